"""What the pipeline needs from outside, as protocols: it never imports the store or the metrics that implement them."""
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol

import msgspec

from gateway.core.call import Call
from gateway.core.keys import KeyStore, SpentStore


class Journal(Protocol):
    """Keeps finished calls. Synchronous and cheap: implementations queue and write in the background."""

    def add(self, call: Call) -> None: ...

    async def close(self) -> None: ...


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A finished response as it is kept. ``body`` is the response object and ``input`` the array of the items that its own
    request added, both as JSON; ``items`` are the ids of what it answered. ``created`` is epoch seconds."""
    id: str
    owner: str                                  # the principal's name: nobody else's eyes
    created: float
    body: bytes
    input: bytes
    previous: str = ""
    target: str = ""                            # provider/model that answered
    items: tuple[str, ...] = ()

    @property
    def n_bytes(self) -> int:
        return len(self.body) + len(self.input)


class Responses(Protocol):
    """Keeps finished responses for ``previous_response_id``. ``put`` and ``delete`` are synchronous and take effect at once for
    whoever reads in this process; reading may raise GatewayError where the store cannot be read."""

    def put(self, kept: Kept) -> None: ...

    def delete(self, owner: str, id_: str) -> None: ...

    async def chain(self, owner: str, id_: str, max_depth: int) -> list[Kept]:
        """The response with this id and those before it, newest first; [] if it is unknown or not the owner's. The chain ends
        where the response before is gone."""
        ...

    async def holding(self, owner: str, item_ids: list[str]) -> list[Kept]:
        """Responses of this owner that hold one of these items, newest first."""
        ...


class Store(Protocol):
    """Where records are kept."""

    @property
    def responses(self) -> Responses: ...

    @property
    def state(self) -> "StateStore": ...

    @property
    def audit(self) -> "Audit": ...

    @property
    def keys(self) -> KeyStore: ...

    @property
    def spent(self) -> SpentStore: ...

    @property
    def combos(self) -> "ComboStore": ...

    @property
    def ledger(self) -> "Ledger": ...

    @property
    def answers(self) -> "AnswerStore": ...

    @property
    def reachable(self) -> bool:
        """Will what is put now be written?"""
        ...

    async def open(self) -> None:
        """Never raises: a store that cannot be opened is said in the log, tried again, and memory goes on meanwhile."""
        ...

    async def close(self) -> None: ...


class Ledger(Journal, Protocol):
    """Keeps a row a request, a row an attempt and sums of them. ``read`` runs a query of
    store.reading, never on the way of a request; it may raise GatewayError."""

    @property
    def read(self) -> Callable[[str, tuple[Any, ...]], Awaitable[Iterable[Any]]]: ...

    async def expire(self, wall: float, days: int) -> int:
        """Let go of rows that are older; sums are kept longer. May raise GatewayError."""
        ...

    @property
    def committed(self) -> int:
        """Requests whose rows are on the disk."""
        ...

    @property
    def waiting(self) -> int:
        """Requests and rows that are not on the disk yet."""
        ...

    @property
    def dropped(self) -> int:
        """Details (attempts, bodies) for which there was no room."""
        ...

    @property
    def lost(self) -> int:
        """Requests for which there was no room."""
        ...


class StateRow(msgspec.Struct, frozen=True):
    """One fact of routing that a restart must not forget. ``book`` and ``key`` name it; ``until`` is epoch seconds after which
    it means nothing; ``value`` is plain data, None = forget the row."""
    book: str
    key: str
    value: dict[str, Any] | None
    until: float


class StateStore(Protocol):
    """Keeps what routing learned. ``load`` once at the start; ``save`` gets what changed since the last call, one batch at a
    time, never two at once: the last write of a (book, key) wins. Both may raise OSError or GatewayError; routing then goes on
    with what it has in memory."""

    async def load(self) -> list[StateRow]: ...

    async def save(self, rows: Sequence[StateRow]) -> None: ...


class AnswerStore(Protocol):
    """Keeps answers that may be given again. ``load`` gives the newest that still count, oldest first, within the bounds, and may
    raise OSError or GatewayError; ``put`` and ``delete`` are synchronous and never fail. ``until`` is epoch seconds."""

    async def load(self, wall: float, max_count: int, max_bytes: int) -> list[tuple[bytes, bytes]]: ...

    def put(self, key: bytes, value: bytes, until: float) -> None: ...

    def delete(self, key: bytes) -> None: ...


class LeaseAsk(msgspec.Struct, frozen=True, array_like=True):
    """A piece of a limit that processes share. ``kind``: so many a ``minute`` or a ``day``, or ``held`` until it is given back
    (places, money). At most ``want`` more, and none where fewer than ``least`` are left. ``back`` of what was given before was not
    used (negative: more was). Of held ones also what the asker holds of it in all, what of it is ``gone`` for good since the last
    time, and how much was gone before anybody asked (``base``)."""
    key: str
    kind: str
    limit: int
    want: int
    least: int
    back: int = 0
    holding: int = 0
    gone: int = 0
    base: int = 0


class Grant(msgspec.Struct, frozen=True, array_like=True):
    """What was given, what is left for everybody, and when what was asked for will fit."""
    given: int
    left: int
    wait_s: float


class SharedState(Protocol):
    """What the processes of one gateway know together. Nothing here raises for a state that cannot be reached: ``up`` says so,
    everybody goes on alone, and it comes back by itself. ``nodes``: how many processes there are, as far as is known."""

    @property
    def up(self) -> bool: ...

    @property
    def nodes(self) -> int: ...

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def lease(self, asks: Sequence[LeaseAsk]) -> list[Grant] | None:
        """All at one instant. None: it cannot be asked."""
        ...

    async def tell(self, topic: str, rows: Sequence[Any]) -> bool:
        """Plain data for everybody else, those included who come later: the newest are kept. False: it could not be told."""
        ...

    def hear(self, told: Callable[[str, list[Any]], None], lost: Callable[[], None]) -> None:
        """Who is called with what others told, and when everything that was leased has been forgotten."""
        ...

    async def get(self, book: str, key: str) -> bytes | None:
        """What any process has put there; None as well where it cannot be asked."""
        ...

    async def put(self, book: str, key: str, value: bytes, ttl_s: float) -> None: ...

    async def drop(self, book: str, keys: Sequence[str]) -> None: ...


class Change(msgspec.Struct, kw_only=True):
    """Something that an operator did, or was refused. ``who`` is the right by which: session, key, loopback, cli."""
    at: float                                   # epoch seconds
    who: str
    action: str                                 # login, key.create, combo.save, cooldown.clear, reload …
    subject: str = ""
    detail: str = ""
    ok: bool = True
    number: int = 0                             # given by whoever keeps it; grows


class Audit(Protocol):
    """Keeps who changed what; bounded. ``add`` is synchronous and never fails; ``last`` may raise GatewayError."""

    def add(self, change: Change) -> None: ...

    async def last(self, limit: int, before: int = 0) -> list[Change]:
        """Newest first; only those with a smaller number than ``before``, unless that is 0."""
        ...


class ComboRow(msgspec.Struct, frozen=True, kw_only=True):
    """A combo that was made while running. ``body``: the fields of its table as JSON, without the name."""
    name: str
    place: int                                  # in the list, from 1
    body: str
    changed: float                              # epoch seconds


class ComboStore(Protocol):
    """Keeps them. All may raise GatewayError. ``revision`` grows with every change, whoever made it; what ``change`` got is kept
    when it returns, all of it or nothing."""

    async def revision(self) -> int: ...

    async def rows(self) -> list[ComboRow]: ...

    async def change(self, put: Sequence[ComboRow], drop: Sequence[str] = ()) -> None: ...


class Dice(Protocol):
    """A source of chance, handed in so that routing can be replayed: ``random.Random`` (seeded in tests) has this face."""

    def random(self) -> float: ...

    def randrange(self, stop: int, /) -> int: ...

    def shuffle(self, items: list[Any], /) -> None: ...

    def betavariate(self, alpha: float, beta: float, /) -> float: ...
