"""Both implementations of a shared state, so that one set of sentences is true of each."""
import asyncio

import pytest

from gateway.shared.hub import Hub
from gateway.shared.local import LocalHub
from gateway.shared.valkey import ValkeyState
from tests.valkey import Server


@pytest.fixture
def valkey(tmp_path):
    server = Server(tmp_path)
    server.start()
    yield server
    server.kill()


@pytest.fixture(params=["hub", "valkey"])
async def join(request, tmp_path):
    """``await join()``: one more process of the same gateway. ``opened`` may be handed what is told and what is lost."""
    made = []
    if request.param == "hub":
        hub = Hub(lambda number, where: None, lambda number: None, expected=2)
        await hub.open(str(tmp_path / "hub.sock"))
    else:
        server = request.getfixturevalue("valkey")

    async def joined(told=lambda topic, rows: None, lost=lambda: None):
        state = LocalHub(str(tmp_path / "hub.sock"), len(made)) if request.param == "hub" else ValkeyState(server.url, "gw:")
        made.append(state)
        state.hear(told, lost)
        await state.open()
        return state
    yield joined
    for state in made:
        await state.close()
    if request.param == "hub":
        await hub.close()


async def until(true, seconds=5.0):
    async with asyncio.timeout(seconds):
        while not true():
            await asyncio.sleep(0.005)
