"""Who changed what is kept, newest first, over a restart, and bounded."""
import pytest

from gateway.core.clock import SystemClock
from gateway.core.ports import Change
from gateway.store import audit
from gateway.store.memory import MemoryStore
from gateway.store.sqlite import SqliteStore


@pytest.fixture(params=["memory", "sqlite"])
async def store(request, tmp_path):
    made = MemoryStore(SystemClock()) if request.param == "memory" else SqliteStore(tmp_path / "gateway.db", SystemClock())
    await made.open()
    yield made
    await made.close()


async def settled(store):
    if isinstance(store, SqliteStore):
        await store.writer.flush()


async def test_changes_are_told_newest_first_and_page_by_page(store):
    for n in range(5):
        store.audit.add(Change(at=float(n), who="cli", action="key.create", subject=f"k{n}", ok=n % 2 == 0))
    await settled(store)
    first = await store.audit.last(2)
    assert [change.subject for change in first] == ["k4", "k3"] and [change.ok for change in first] == [True, False]
    rest = await store.audit.last(10, before=first[-1].number)
    assert [change.subject for change in rest] == ["k2", "k1", "k0"]


async def test_the_oldest_go(tmp_path, monkeypatch):
    monkeypatch.setattr(audit, "MAX_CHANGES", 50)
    store = SqliteStore(tmp_path / "gateway.db", SystemClock())
    await store.open()
    for n in range(301):
        store.audit.add(Change(at=float(n), who="cli", action="a"))
    await store.writer.flush()
    assert len(await store.audit.last(1_000)) <= 50 + audit.TRIM_EVERY
    await store.close()
    again = SqliteStore(tmp_path / "gateway.db", SystemClock())
    await again.open()
    assert (await again.audit.last(1))[0].at == 300.0
    await again.close()
