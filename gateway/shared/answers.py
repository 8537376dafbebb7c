"""Which answers did other processes keep? Asked where this one has none, told what this one keeps (cache.replays)."""
from collections.abc import Callable
from typing import Final

import msgspec

from gateway.cache.exact import Answer
from gateway.core.ports import SharedState
from gateway.shared.posts import Posts

BOOK: Final = "answer"


class Shelf:
    """``since``: answers from before were cleared away by somebody (epoch seconds)."""

    def __init__(self, state: SharedState, posts: Posts, cleared: Callable[[], None]) -> None:
        self.since = 0.0
        self.clear = cleared                      # tells everybody
        self._state = state
        self._posts = posts

    async def find(self, key: bytes, wall: float) -> Answer | None:
        found = await self._state.get(BOOK, key.hex())
        if found is None:
            return None
        try:
            answer = msgspec.msgpack.decode(found, type=Answer)
        except msgspec.DecodeError:               # of another version
            return None
        return answer if answer.expires > wall and answer.created > self.since else None

    def put(self, key: bytes, answer: Answer, wall: float) -> None:
        self._posts.send(self._state.put(BOOK, key.hex(), msgspec.msgpack.encode(answer), answer.expires - wall))
