"""What is kept of answers? Whole bodies and whole streams by key: least recently used out first, within one budget of bytes."""
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

MAX_ENTRY_BYTES: Final = 2 * 1024 * 1024
MAX_BYTES: Final = 128 * 1024 * 1024
ENTRY_OVERHEAD: Final = 512                         # bytes that an entry costs besides its body, roughly


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A finished answer as it left: ``body`` to the byte, of a stream all of its frames. Times are epoch seconds."""
    body: bytes
    content_type: str
    stream: bool
    routed: str                                     # who gave it, provider/model
    model: str = ""                                 # as it was asked for
    request: bytes = b""                            # digest of the request, where the key does not say it (idempotency)
    input_tokens: int = 0
    output_tokens: int = 0
    created: float = 0.0
    expires: float = 0.0

    @property
    def cost(self) -> int:
        return len(self.body) + ENTRY_OVERHEAD


class Statistics(msgspec.Struct):
    """Since the start."""
    hits: int = 0
    misses: int = 0
    waited: int = 0                                 # of the hits: those that waited for an identical request
    stored: int = 0
    evicted: int = 0
    too_large: int = 0
    saved_input_tokens: int = 0
    saved_output_tokens: int = 0


class Answers:
    """``kept`` and ``dropped`` are told of what a restart should know."""

    def __init__(self, max_entries: int = 1_000, max_bytes: int = MAX_BYTES) -> None:
        self.max_entries = max_entries
        self.max_bytes = max_bytes
        self.n_bytes = 0
        self.statistics = Statistics()
        self.kept: Callable[[bytes, Answer], None] | None = None
        self.dropped: Callable[[Iterable[bytes]], None] | None = None
        self._kept: OrderedDict[bytes, Answer] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: bytes, wall: float) -> Answer | None:
        answer = self._kept.get(key)
        if answer is None:
            return None
        if answer.expires <= wall:
            self._drop([key])
            return None
        self._kept.move_to_end(key)
        return answer

    def hit(self, answer: Answer, waited: bool = False) -> None:
        count = self.statistics
        count.hits += 1
        count.waited += waited
        count.saved_input_tokens += answer.input_tokens
        count.saved_output_tokens += answer.output_tokens

    def put(self, key: bytes, answer: Answer) -> bool:
        """False: larger than anything that is kept."""
        if len(answer.body) > MAX_ENTRY_BYTES or answer.cost > self.max_bytes:
            self.statistics.too_large += 1
            return False
        self._put(key, answer)
        self.statistics.stored += 1
        if self.kept is not None:
            self.kept(key, answer)
        return True

    def restore(self, rows: Iterable[tuple[bytes, Answer]], wall: float) -> None:
        """What an earlier process kept, newest last."""
        for key, answer in rows:
            if answer.expires > wall and answer.cost <= self.max_bytes:
                self._put(key, answer)

    def clear(self) -> int:
        """Forget everything; says how many there were."""
        keys = list(self._kept)
        self._drop(keys)
        return len(keys)

    def _put(self, key: bytes, answer: Answer) -> None:
        old = self._kept.pop(key, None)
        self.n_bytes += answer.cost - (old.cost if old is not None else 0)
        self._kept[key] = answer
        out: list[bytes] = []
        while len(self._kept) > self.max_entries or self.n_bytes > self.max_bytes:
            oldest, gone = self._kept.popitem(last=False)
            self.n_bytes -= gone.cost
            out.append(oldest)
        self.statistics.evicted += len(out)
        if out and self.dropped is not None:
            self.dropped(out)

    def _drop(self, keys: list[bytes]) -> None:
        for key in keys:
            self.n_bytes -= self._kept.pop(key).cost
        if keys and self.dropped is not None:
            self.dropped(keys)
