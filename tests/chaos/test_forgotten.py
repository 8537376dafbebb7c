"""A request that failed, or whose client left, leaves nothing behind: neither its own things nor the configuration it stood on."""
import asyncio
import gc
import sys
import weakref
from collections import Counter

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


# Of each of these some live while a request does: never one more for each that is over.
FLEETING = {"coroutine", "generator", "async_generator", "frame", "traceback", "cell", "function", "method", "Task", "_asyncio.Task", "Future",
            "_asyncio.Future", "Context"}
BLOCKS = 50                                          # of memory for each request, in rows that are kept to a bound (30); a forgotten Call is 30 more


async def grown(gateway, base_url, rounds=2):
    """What lives after some rounds of every surface over every fault that did not before: kinds by number, blocks of memory by request."""
    async def asked():
        names = [f"{prefix}{name.replace(' ', '-')}{suffix}" for name in FAULTS for prefix, suffix in (("", "/m"), ("helped-", ""))]
        await asyncio.gather(*(surface.ask(base_url, name, stream) for name in names for surface in SURFACES.values()
                               for stream in (True, False)))
        return len(names) * len(SURFACES) * 2

    async def living():
        await asyncio.sleep(0.3)
        gateway.listener.parts.store.ledger.gather()
        for _ in range(3):
            gc.collect()
        return Counter(type(one).__qualname__ for one in gc.get_objects()
                       if str(type(one).__module__).startswith("gateway.") or type(one).__qualname__ in FLEETING), sys.getallocatedblocks()

    await asked()                                    # what is made once
    await asked()
    before, blocks = await living()
    n = sum([await asked() for _ in range(rounds)])
    after, more = await living()
    return {kind: count - before[kind] for kind, count in after.items() if count - before[kind] > n / 4 and kind != "Asked"}, (more - blocks) / n


@pytest.fixture
async def every_fault(gateway, upstream):
    config = client_key() + OPEN_ALL + '[store]\nurl = "memory:"\n[routing]\ntransient_cooldown_s = 0\n'
    for fault in FAULTS:
        name, up = fault.replace(" ", "-"), await upstream(FAULTS[fault])
        config += provider(up, name, timeouts="{idle_s = 0.1, first_token_s = 0.2}")
        config += f'[[combos]]\nname = "helped-{name}"\ntargets = ["{name}/m", "answers-well/m"]\n'
    return await gateway(config)


async def test_no_request_leaves_a_thing_of_its_own(gateway, every_fault):
    kinds, blocks = await grown(gateway, every_fault)
    assert kinds == {} and blocks < BLOCKS


async def test_one_that_was_kept_would_be_seen(gateway, every_fault, monkeypatch):
    kept, ledger = [], type(gateway.listener.parts.store.ledger)
    add = ledger.add
    monkeypatch.setattr(ledger, "add", lambda self, call, *more: (kept.append(call), add(self, call, *more))[1])
    kinds, _ = await grown(gateway, every_fault, rounds=1)
    assert "Call" in kinds and kept


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
