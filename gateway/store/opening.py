"""Which store does an address mean? Its library is imported only when one needs it."""
from pathlib import Path

from gateway.core.clock import Clock
from gateway.core.ports import Store
from gateway.store.memory import MemoryStore


def store_at(address: str, clock: Clock) -> Store:
    """``memory:``, ``sqlite:`` with an absolute path, or ``postgresql://…``. Nothing is touched before ``open``."""
    if address.startswith("postgresql:"):
        from gateway.store.postgres import PostgresStore
        return PostgresStore(address, clock)
    if not address.startswith("sqlite:"):
        return MemoryStore(clock)
    from gateway.store.sqlite import SqliteStore
    return SqliteStore(Path(address.removeprefix("sqlite:")), clock)
