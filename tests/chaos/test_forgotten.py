"""A request that failed, or whose client left, leaves nothing behind: neither its own things nor the configuration it stood on."""
import asyncio
import gc
import weakref

import pytest

from gateway.config.load import load
from gateway.mock import script as say
from gateway.server.reload import Reloader
from tests.conftest import client_key, provider
from tests.surfaces import OPEN_ALL, SURFACES

FAULTS = {
    "fails": say.error(500, "it broke"), "falls silent": say.stall("begun "), "says an error": say.stream("begun ").but(
        say.Send(say.frame(error={"message": "it broke"}, choices=[])), after=2), "resets": say.stream("begun ").but(say.Reset(), after=2),
    "answers with nothing": say.stream(), "answers with a page": say.html(200), "answers well": say.stream("well"),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
async def test_an_old_configuration_is_freed_whatever_happened_under_it(gateway, upstream, tmp_path, fault):
    up = await upstream(fault)
    config = client_key() + provider(up, timeouts="{idle_s = 0.1, first_token_s = 0.2}") + OPEN_ALL + '[store]\nurl = "memory:"\n'
    base_url = await gateway(config)
    for stream in (True, False):
        for surface in SURFACES.values():
            await surface.ask(base_url, "m", stream)
    await let_go(gateway, tmp_path)


async def test_the_same_when_clients_leave(gateway, upstream, tmp_path):
    up = await upstream(say.stall("begun "))
    base_url = await gateway(client_key() + provider(up) + OPEN_ALL)
    leaving = [asyncio.create_task(surface.ask(base_url, "m", stream)) for surface in SURFACES.values() for stream in (True, False)]
    await up.until(lambda: up.busy == len(leaving))
    await asyncio.sleep(0.05)
    for task in leaving:
        task.cancel()
    await up.until(lambda: not up.busy)
    await asyncio.sleep(0.05)
    await let_go(gateway, tmp_path)


async def let_go(gateway, tmp_path):
    """Whoever still holds the ground would hold every ground there ever was."""
    file = tmp_path / "gateway.toml"
    ground = weakref.ref(gateway.listener.desk.ground)
    assert await Reloader(gateway.listener, lambda: load(file, {}), file).reload() == []
    for _ in range(20):
        gc.collect()
        if ground() is None:
            return
        await asyncio.sleep(0.05)
    raise AssertionError([type(holder).__qualname__ for holder in gc.get_referrers(ground())])
