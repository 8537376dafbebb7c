"""How is a response found that another process answered? The store's own first, then what all of them share for a day.

Owners are kept as digests: nobody's name can be read there. A response that was deleted anywhere is gone everywhere.
"""
import asyncio
import hashlib
from collections.abc import Callable
from typing import Final

import msgspec

from gateway.core.bounded import LruMap
from gateway.core.ports import Kept, Responses, SharedState
from gateway.shared.posts import Posts

KEPT_S: Final = 86_400.0
LATE_S: Final = 0.05                          # what was answered just now may be on its way
BOOK: Final = "response"
ITEMS: Final = "item"
MAX_GONE: Final = 10_000
MAX_ASKED: Final = 50


class SharedResponses:
    """``core.ports.Responses``. ``told`` is called with what all processes must know of as deleted: id, digest of its owner."""

    def __init__(self, inner: Responses, state: SharedState, posts: Posts, told: Callable[[str, str], None]) -> None:
        self._inner = inner
        self._state = state
        self._posts = posts
        self._told = told
        self._gone: LruMap[tuple[str, str], None] = LruMap(MAX_GONE)

    def put(self, kept: Kept) -> None:
        self._inner.put(kept)
        data = msgspec.msgpack.encode(msgspec.structs.replace(kept, owner=digest(kept.owner)))
        self._posts.send(self._put(kept, data))

    async def _put(self, kept: Kept, data: bytes) -> None:
        await self._state.put(BOOK, kept.id, data, KEPT_S)
        for item in kept.items[:MAX_ASKED]:
            await self._state.put(ITEMS, f"{digest(kept.owner)}:{item}", kept.id.encode(), KEPT_S)

    def delete(self, owner: str, id_: str) -> None:
        self._inner.delete(owner, id_)
        self.forget(id_, digest(owner))
        self._told(id_, digest(owner))
        self._posts.send(self._drop(owner, id_))

    async def _drop(self, owner: str, id_: str) -> None:
        if await self._shared(owner, id_) is not None:
            await self._state.drop(BOOK, [id_])

    def forget(self, id_: str, owner: str) -> None:
        """Somebody deleted it; ``owner`` is a digest."""
        self._gone.put((id_, owner), None)

    async def chain(self, owner: str, id_: str, max_depth: int) -> list[Kept]:
        out: list[Kept] = []
        who = digest(owner)
        while id_ and len(out) < max_depth:
            found = [] if (id_, who) in self._gone else await self._found(owner, id_, max_depth - len(out))
            for kept in found:
                if (kept.id, who) in self._gone:
                    return out
                out.append(kept)
            if not found:
                break
            id_ = found[-1].previous
        return out

    async def _found(self, owner: str, id_: str, max_depth: int) -> list[Kept]:
        for late in (False, True):
            if found := await self._inner.chain(owner, id_, max_depth):
                return found
            if (kept := await self._shared(owner, id_)) is not None:
                return [kept]
            if not late and self._state.up:
                await asyncio.sleep(LATE_S)
        return []

    async def _shared(self, owner: str, id_: str) -> Kept | None:
        data = await self._state.get(BOOK, id_)
        if data is None:
            return None
        try:
            kept = msgspec.msgpack.decode(data, type=Kept)
        except msgspec.DecodeError:               # of another version
            return None
        return msgspec.structs.replace(kept, owner=owner) if kept.owner == digest(owner) else None

    async def holding(self, owner: str, item_ids: list[str]) -> list[Kept]:
        who = digest(owner)
        found = {kept.id: kept for kept in await self._inner.holding(owner, item_ids)}
        known = {item for kept in found.values() for item in kept.items}
        for item in [item for item in item_ids if item not in known][:MAX_ASKED]:
            id_ = await self._state.get(ITEMS, f"{who}:{item}")
            if id_ is not None and (kept := await self._shared(owner, id_.decode())) is not None:
                found.setdefault(kept.id, kept)
        return sorted((kept for kept in found.values() if (kept.id, who) not in self._gone), key=lambda kept: -kept.created)


def digest(owner: str) -> str:
    return hashlib.blake2b(owner.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
