"""Under load and for heavy requests another order: whom it puts first, and what it leaves alone."""
import pytest

from gateway.mock import script as say
from gateway.pipeline.volume import overridden
from gateway.providers.registry import Model, Price
from gateway.routing.health import Health
from gateway.routing.resolve import resolve
from gateway.routing.walk import Walk
from tests.conftest import client_key
from tests.conftest import provider as upstream_table
from tests.talk import ASK, ask
from tests.unit.routing.scene import NOW, catalog, provider, request

DEAR = Model("opus-9", context=400_000, reasoning=True, price=Price(input=15.0, output=75.0))
FREE = Model("tiny-mini", price=Price(input=0.0, output=0.0))
SMALL = Model("small-mini", price=Price(input=0.5, output=0.5))
HOUSE = catalog(provider("dear", DEAR), provider("free", FREE, order=1), provider("small", SMALL, order=2))


def order(n_inflight, health=None, **facts):
    asked = request(**facts)
    found = overridden(resolve("auto", HOUSE), asked, n_inflight)
    walk = Walk(found, asked, health or Health(), 10, NOW)
    first = walk.next(NOW)
    return [first.target.model.id, *(target.model.id for target in walk.targets if target is not first.target)]


def test_when_all_is_quiet_the_order_stays():
    asked = request()
    resolution = resolve("auto", HOUSE)
    assert overridden(resolution, asked, 1) is resolution


def test_a_light_request_under_load_goes_to_the_cheapest():
    assert order(10) == ["tiny-mini", "small-mini", "opus-9"]
    assert order(10, chars=10_000)[0] == "opus-9", "it is not light"


def test_in_a_flood_the_cheap_take_turns_and_the_dear_come_last():
    health = Health()
    seen = [order(50, health) for _ in range(4)]
    assert [one[0] for one in seen] == ["tiny-mini", "small-mini"] * 2
    assert all(one[-1] == "opus-9" for one in seen)


def test_whoever_is_taken_out_later_is_out_of_this_order_too():
    resolution = resolve("auto", HOUSE)
    left = overridden(resolution, request(), 50).only([t for t in resolution.targets if t.model.id != "tiny-mini"])
    walk = Walk(left, request(), Health(), 10, NOW)
    assert walk.next(NOW).target.model.id == "small-mini"
    assert [target.model.id for target in walk.targets] == ["small-mini", "opus-9"]


@pytest.mark.parametrize("facts", [
    {"chars": 120_000}, {"images": 1}, {"tools": {f"t{n}": None for n in range(8)}}, {"max_tokens": 40_000}])
def test_a_heavy_request_goes_to_the_most_capable(facts):
    reverse = catalog(provider("free", FREE), provider("dear", DEAR, order=1))
    found = overridden(resolve("auto", reverse), request(**facts), 1)
    assert [leg.target.model.id for leg in found.legs] == ["opus-9", "tiny-mini"]


@pytest.mark.parametrize(("volume", "via"), [("adaptive", "b/opus-9"), ("off", "a/tiny")])
async def test_it_is_for_who_asks_for_it(gateway, upstream, volume, via):
    up = await upstream(say.reply("hello"))
    base_url = await gateway(client_key() + upstream_table(up, "a", '["tiny"]') + upstream_table(up, "b", '["opus-9"]')
                             + f'[routing]\nvolume = "{volume}"\n')
    got = await ask(base_url, {**ASK, "model": "auto", "max_tokens": 40_000}, stream=False)
    assert got.headers["X-Routed-Via"] == via
