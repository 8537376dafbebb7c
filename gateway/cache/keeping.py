"""Which answers outlive a restart? Those that are one JSON body: written behind the answer, read once at the start."""
import logging
from collections.abc import Iterable
from typing import Final

import msgspec

from gateway.cache.exact import Answer, Answers
from gateway.core.clock import Clock
from gateway.core.errors import GatewayError
from gateway.core.ports import AnswerStore

log = logging.getLogger("gateway.cache")

LOADED_BYTES: Final = 32 * 1024 * 1024              # at the start; more would hold it up


class Keeping:
    """``enabled`` follows the configuration."""

    def __init__(self, answers: Answers, store: AnswerStore, clock: Clock) -> None:
        self.enabled = True
        self._answers = answers
        self._store = store
        self._clock = clock

    async def open(self) -> None:
        """What an earlier process kept; a store that cannot be read costs only that."""
        if self.enabled:
            wall = self._clock.wall()
            try:
                rows = await self._store.load(wall, self._answers.max_entries, LOADED_BYTES)
                self._answers.restore(((key, msgspec.msgpack.decode(value, type=Answer)) for key, value in rows), wall)
            except (OSError, GatewayError, msgspec.DecodeError) as error:
                log.warning("the answers of before cannot be read: %s", error)
        self._answers.kept, self._answers.dropped = self._kept, self._dropped

    def _kept(self, key: bytes, answer: Answer) -> None:
        if self.enabled and not answer.stream:
            self._store.put(key, msgspec.msgpack.encode(answer), answer.expires)

    def _dropped(self, keys: Iterable[bytes]) -> None:
        for key in keys:
            self._store.delete(key)
