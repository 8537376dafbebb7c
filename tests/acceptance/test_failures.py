"""What a router must do, by the numbers of its list: what a failure means for the next try (A12 to A18)."""
import asyncio
import json

import pytest

from gateway.config.load import loads
from gateway.mock import script as say
from gateway.server import compose
from tests.acceptance.house import DOWN, MANY, SLOW_DOWN, UNABLE, House, combo, three
from tests.chaos.test_disconnect import leave


def retry_after(got):
    return int(got.headers["Retry-After"])


async def test_a12_twenty_attempts_count_those_that_were_made_and_the_answer_lists_them(gateway, upstream):
    models = [f"m{n}" for n in range(30)]
    house = await House.open(gateway, upstream, {"a": SLOW_DOWN}, models=json.dumps(models), more=combo("priority", "a/*"))
    for model in models[:5]:
        assert (await house.ask(f"a/{model}")).status == 429
    got = await house.ask()
    assert (got.status, got.headers["X-Fallback-Attempts"], house.asked("a")) == (429, "20", 25), "who rested cost no attempt"
    trail = got.headers["X-Fallback-Trail"].split("; ")
    assert trail[0] == "a/m5 key1=rate_limited" and trail[-1] == "+10 more"
    assert "All 20 attempts failed" in got.error["message"] and "a/m5 key1: rate_limited" in got.error["message"]


async def test_a13_who_cannot_be_asked_is_skipped_and_all_skipped_is_told_with_the_time(gateway, upstream):
    house = await House.open(
        gateway, upstream, three(), models=MANY, more=combo("priority", "a/m", "b/m", "c/m", "c/m12") + combo("priority", "a/m", "b/m", "c/m12", name="two"),
        facts={"a": {"keys": '[{key = "sk-a-1-0123456789", models = ["m1"]}]'}})
    assert await house.via(1) == "b", "a has no key for this model"
    await house.trip("b")
    assert await house.via(1) == "c", "the breaker of b is open"
    house.say(c=DOWN)
    await house.ask("c/m12")
    house.say(c=say.stream("from c"))
    asked = {id: house.asked(id) for id in "abc"}
    got = await house.ask("two")
    assert (got.status, got.error["code"]) == (503, "upstream_unhealthy") and 0 < retry_after(got) <= 30
    assert {id: house.asked(id) for id in "abc"} == asked, "nobody was asked"
    assert "a/m12" not in got.error["message"] and "b/m rests" in got.error["message"]
    house.say(c=SLOW_DOWN)
    house.clock.by += 25
    await house.ask("c/m11")
    got = await house.ask("c/m11")
    assert got.status == 429 and 60 < retry_after(got) <= 90, "where a cause is a rate limit, it is told as one"


REFUSALS = {
    "a body that is wrong": (say.error(400, "messages[0].content must be a string", code="invalid_type"), 1),
    "a context that is too small": (say.error(400, "maximum context length is 10 tokens", code="context_length_exceeded"), 2),
    "a parameter's range": (say.error(400, "max_tokens must be in range [1, 8]", code="integer_above_max_value"), 2),
    "no access to the model": (say.error(403, "Your plan does not include this model", code="model_access_denied"), 2),
}


async def test_a14_a_wrong_body_ends_the_walk_others_move_on_and_nobody_asks_for_a_client_that_left(gateway, upstream):
    for refusal, attempts in REFUSALS.values():
        house = await House.open(gateway, upstream, {"a": refusal, "b": say.stream("from b")}, more=combo("priority", "a/m", "b/m"))
        got = await house.ask()
        assert (house.asked("a"), house.asked("b")) == (1, attempts - 1)
        assert got.status == (400 if attempts == 1 else 200)
        if attempts == 1:
            assert got.error["message"] == "messages[0].content must be a string"
            assert house.ground.health.snapshot(house.clock.now()) == []
    house = await House.open(gateway, upstream, {"a": say.hang(), "b": say.stream("from b")}, more='[[combos]]\nname = "m"\ntargets = ["a/m", "b/m"]\n')
    _, writer = await leave(house.base_url, True)
    await house.ups["a"].until(lambda: house.ups["a"].busy == 1)
    writer.transport.abort()
    await house.ups["a"].until(lambda: not house.ups["a"].open_connections, 1.0)
    assert house.asked("b") == 0
    assert house.ground.health.snapshot(house.clock.now()) == []


async def test_a15_an_account_without_credits_is_out_until_it_is_changed(gateway, upstream):
    broke = say.error(402, "Insufficient credits", code="insufficient_quota")
    house = await House.open(gateway, upstream, {"a": broke, "b": say.stream("from b")}, models='["m", "n"]', more=(
        combo("priority", "a/m", "b/m") + combo("priority", "a/n", "b/n", name="other")))
    assert await house.via(1) == "b", "the next target at once"
    house.say(a=say.stream("from a"))
    assert await house.via(1, "other") == "b", "the account is out for each of its models"
    house.clock.by += 23 * 3600
    assert await house.via(1) == "b"
    assert house.asked("a") == 1
    changed = loads(house.config.replace("sk-a-1-0123456789", "sk-a-2-paid-0123456789"), {})
    house.listener.desk.ground = compose.ground(changed, house.listener.parts)
    assert await house.via(2) == "aa", "another key is another account"


async def test_a16_stated_times_are_believed_others_double_up_to_ten_minutes(gateway, upstream):
    house = await House.open(gateway, upstream, {"a": say.error(429, "slow down", headers={"Retry-After": "7"})})
    await house.ask("a/m")
    assert retry_after(await house.ask("a/m")) in (6, 7)
    house.clock.by += 7.1
    house.say(a=say.stream("well"))
    assert (await house.ask("a/m")).status == 200
    house.say(a=SLOW_DOWN)
    for expected in (90, 180, 360, 600, 600):
        asked = house.asked("a")
        await house.ask("a/m")
        refused = await house.ask("a/m")
        assert (refused.status, house.asked("a")) == (429, asked + 1)
        assert retry_after(refused) == pytest.approx(expected, abs=1)
        house.clock.by += expected + 1
    house.say(a=say.stream("well again"))
    assert (await house.ask("a/m")).status == 200
    house.say(a=SLOW_DOWN.later(0.05))
    several = await asyncio.gather(*(house.ask("a/m") for _ in range(4)))
    assert {got.status for got in several} == {429}
    assert retry_after(await house.ask("a/m")) == pytest.approx(90, abs=1), "a success forgets, and four in flight are one failure"
    house.clock.by += 91
    await house.ask("a/m")
    assert retry_after(await house.ask("a/m")) == pytest.approx(180, abs=1)


async def test_a17_a_pin_holds_for_a_moment_s_trouble_and_falls_through_when_its_target_is_out(gateway, upstream):
    price = {id: {"models": f'[{{id = "m", price = {{input = {n}.0, output = {n}.0}}}}]'} for id, n in (("a", 3), ("b", 2), ("c", 1))}
    house = await House.open(gateway, upstream, three(c=UNABLE), facts=price, more=combo("cost-optimized", context_pin="true"))
    assert await house.via(1, session="s") == "b"
    house.say(c=say.stream("c again"))
    assert await house.via(1) == "c", "others go by the strategy"
    assert await house.via(2, session="s") == "bb", "the session is pinned"
    house.say(b=say.error(429, "slow down", headers={"Retry-After": "7"}))
    assert await house.via(1, session="s") == "a", "the pin holds: next in the list, not by the strategy"
    house.say(a=say.error(402, "Insufficient credits"), b=say.stream("b again"))
    house.clock.by += 8
    await house.ask("a/m")
    asked = house.asked("a")
    assert await house.via(3, session="s") == "ccc", "its account is out: the strategy decides"
    assert house.asked("a") == asked


async def test_a18_twelve_failures_open_the_breaker_one_probe_closes_it_and_a_restart_remembers(gateway, upstream, tmp_path):
    house = await House.open(gateway, upstream, {"a": say.stream("from a", delay_s=0.02), "b": say.stream("from b")}, models=MANY, more=(
        combo("priority", "a/m", "b/m") + f'[store]\nurl = "sqlite:{tmp_path}/state.db"\n'))

    def state():
        return house.ground.health.breaker(house.ground.catalog.targets[0], house.clock.now())
    await house.trip("a", pause_s=0.0)
    assert (state(), house.ground.health.breakers["a"].count) == ("closed", 1), "one account counts once in five seconds"
    house.clock.by += 3600
    await house.trip("a", times=11)
    assert state() == "degraded"
    house.clock.by += 6
    house.say(a=DOWN)
    await house.ask("a/m12")
    house.say(a=say.stream("from a", delay_s=0.02))
    assert state() == "open"
    await house.restart()
    asked = house.asked("a")
    assert state() == "open"
    assert (await house.ask("a/m")).status == 503 and await house.via(2) == "bb"
    assert house.asked("a") == asked
    house.clock.by += 31
    assert state() == "half-open"
    answers = await asyncio.gather(*(house.ask() for _ in range(12)))
    assert {got.status for got in answers} == {200}
    assert house.asked("a") == asked + 1, "one probe, however many come"
    assert state() == "closed"
    assert await house.via(3) == "aaa"
