"""What of the operator's side works without a gateway? The configuration, the store's keys, combos and records; nothing listens."""
from collections.abc import Awaitable, Callable
from typing import TypeVar

from gateway.admin.office import Office
from gateway.config.snapshot import Snapshot
from gateway.server import compose

T = TypeVar("T")


async def with_office(snapshot: Snapshot, work: Callable[[Office], Awaitable[T]]) -> T:
    """Do something with an office over a store that a running gateway may use at the same time."""
    desk, parts = compose.build(snapshot)
    office = compose.office(desk, parts)
    try:
        await parts.store.open()
        await compose.open_keys(desk, parts)
        await parts.combobook.refresh()
        return await work(office)
    finally:
        office.close()
        await compose.dissolve(parts)
