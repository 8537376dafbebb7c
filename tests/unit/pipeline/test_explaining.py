"""Why who was asked: as a header, in the record, and asked of a running gateway, all by the code that routes."""
import asyncio
import json

import pytest
from click.testing import CliRunner

from gateway.cli.explain import command
from gateway.core.errors import GatewayError
from gateway.mock import script as say
from gateway.pipeline.explaining import RequestFacts, explain_live
from tests.conftest import client_key, provider
from tests.talk import ASK, ask

HEADER = "X-Gateway-Decision"
ON = "[log]\ndecision_header = true\n"


class Kept:
    """A journal that keeps."""

    def __init__(self):
        self.calls = []

    def add(self, call):
        self.calls.append(call)

    async def close(self):
        pass


async def house(gateway, upstream, *answers, more="", **settings):
    ups = [await upstream(answer) for answer in answers]
    base_url = await gateway(client_key() + more + "".join(
        provider(up, name, keys=f'["sk-{name}-123456"]', **settings) for up, name in zip(ups, "abc", strict=False)))
    kept = gateway.listener.desk.ground.journal = Kept()
    return base_url, kept.calls


async def test_the_header_tells_order_and_place_when_it_is_asked_for(gateway, upstream):
    base_url, calls = await house(gateway, upstream, say.error(503), say.stream("b"), more=ON)
    got = await ask(base_url, stream=True)
    assert got.headers[HEADER] == "target=b/m; place=2; model=m; as=model; strategy=priority; order=a/m, b/m"
    again = await ask(base_url, stream=True)
    assert again.headers[HEADER] == "target=b/m; place=2; model=m; as=model; strategy=priority; order=b/m; skipped=a/m (cooldown)"
    assert calls[0].decision == got.headers[HEADER]


async def test_nobody_hears_of_it_otherwise_but_the_record(gateway, upstream):
    base_url, calls = await house(gateway, upstream, say.error(503), say.stream("b"))
    got = await ask(base_url, stream=True)
    assert HEADER not in got.headers
    assert (calls[0].strategy, calls[0].places, calls[0].decision) == ("priority", 2, "b/m is 2 of 2 by priority")
    assert [attempt.rank for attempt in calls[0].attempts] == [1, 2]


@pytest.mark.parametrize("more", ["", ON])
async def test_where_nobody_answers_it_says_so(gateway, upstream, more):
    base_url, calls = await house(gateway, upstream, say.error(503), more=more)
    got = await ask(base_url)
    assert got.status == 503
    assert got.headers.get(HEADER, "").startswith("target=none; " if more else "")
    assert calls[0].decision.startswith("target=none; model=m" if more else "none of 1 by priority")


async def test_a_name_is_header_safe(gateway, upstream):
    base_url, _ = await house(gateway, upstream, say.stream("a"), more=ON, models='["m"]')
    combo = ON + '[routing.aliases]\n"gär; tñ" = "m"\n'
    base_url = await gateway(client_key() + combo + provider(await upstream(say.stream("a")), "a"))
    got = await ask(base_url, {**ASK, "model": "gär; tñ"}, stream=True)
    assert "model=g%C3%A4r, t%C3%B1; as=alias" in got.headers[HEADER]


async def test_the_rank_of_who_won_a_race_is_the_winners(gateway, upstream):
    race = ON + '[routing]\nhedge = "race"\nhedge_after_s = 0.1\nhedge_share = 1.0\n'
    base_url, calls = await house(gateway, upstream, say.stream("from a").later(0.3), say.hang(), more=race)
    got = await ask(base_url, stream=True)
    assert got.headers[HEADER].startswith("target=a/m; place=1; ")
    assert [(attempt.label, attempt.hedged, attempt.committed) for attempt in calls[0].attempts] == [
        ("a/m", False, True), ("b/m", True, False)]


async def test_combos_inside_stay_closed_until_their_turn(gateway, upstream):
    combos = ON + ('[[combos]]\nname = "outer"\nnested = "execute"\ntargets = ["a/m", {combo = "inner"}]\n'
                   '[[combos]]\nname = "inner"\nstrategy = "round-robin"\ntargets = ["b/m", "c/m"]\n')
    base_url, _ = await house(gateway, upstream, say.error(503), say.stream("b"), say.stream("c"), more=combos)
    seen = [await ask(base_url, {**ASK, "model": "outer"}, stream=True) for _ in range(2)]
    assert [got.headers["X-Routed-Via"] for got in seen] == ["b/m", "c/m"]
    assert seen[0].headers[HEADER].startswith("target=b/m; place=2; model=outer; as=combo; strategy=priority; order=a/m, inner")


async def test_a_running_gateway_knows_its_cooldowns_and_full_accounts(gateway, upstream):
    base_url, _ = await house(gateway, upstream, say.error(503), say.hang(), limits="{concurrency = 1}")
    asking = asyncio.ensure_future(ask(base_url, stream=True))
    ground = gateway.listener.desk.ground
    for _ in range(100):
        found = explain_live(ground, "m")
        if [place.skip for place in found.places] == ["cooldown", "limit"]:
            break
        await asyncio.sleep(0.01)
    assert (found.requested, found.kind, found.strategy) == ("m", "model", "priority")
    assert [(place.label, place.skip) for place in found.places] == [("a/m", "cooldown"), ("b/m", "limit")]
    asking.cancel()
    with pytest.raises(GatewayError, match="nobody-has-this"):
        explain_live(ground, "nobody-has-this")


async def test_it_is_told_what_the_request_needs(gateway, upstream):
    await house(gateway, upstream, say.stream("a"), models='[{id = "m", vision = false, context = 4000}]')
    ground = gateway.listener.desk.ground
    assert [place.skip for place in explain_live(ground, "m", RequestFacts(image=True)).places] == ["vision"]
    assert [place.skip for place in explain_live(ground, "m", RequestFacts(tokens=9000)).places] == ["too_large"]


async def test_the_command_asks_a_running_gateway(gateway, upstream):
    base_url, _ = await house(gateway, upstream, say.error(503), say.stream("b"))
    await ask(base_url, stream=True)

    def run(*args):
        return asyncio.to_thread(CliRunner().invoke, command, [*args, "--url", base_url])
    rows = json.loads((await run("m", "--json")).output)
    assert [(row["label"], row["position"], row["skip"]) for row in rows] == [("a/m", None, "cooldown"), ("b/m", 1, "")]
    assert "rests for" in (await run("m")).output
    lost = await run("nobody-has-this")
    assert lost.exit_code == 1 and "does not exist" in lost.output
