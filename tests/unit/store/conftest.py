"""Stores of every kind, each empty; the server of one kind is started when the first test wants it."""
import pytest

from gateway.store.opening import store_at
from tests import postgres
from tests.unit.store.scene import StillClock

KINDS = ("memory:", "sqlite:", "postgresql:")


@pytest.fixture
def address_of(request, tmp_path):
    """``await address_of(kind)``: a place where nothing is yet."""
    async def address(kind):
        if kind == "postgresql:":
            return await postgres.schema(request.getfixturevalue("pg_server"))
        return kind + (str(tmp_path / "x.db") if kind == "sqlite:" else "")
    if "postgresql:" in getattr(getattr(request.node, "callspec", None), "params", {}).values():
        request.getfixturevalue("pg_server")
    return address


@pytest.fixture(params=KINDS)
async def store(request, address_of):
    """An open store of each kind."""
    kept = store_at(await address_of(request.param), StillClock())
    await kept.open()
    yield kept
    await kept.close()
