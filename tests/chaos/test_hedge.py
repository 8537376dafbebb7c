"""Two targets race for the commit point: who is first answers, who is late is left and not blamed."""
import asyncio

import pytest

from gateway.mock import script as say
from tests.chaos.test_disconnect import leave
from tests.conftest import client_key, provider
from tests.talk import AUTH, ask

RACE = '[routing]\nhedge = "race"\nhedge_after_s = 0.1\nhedge_share = 1.0\n'


async def two(gateway, upstream, first, second, settings=RACE, names="ab"):
    ups = [await upstream(first), await upstream(second)]
    base_url = await gateway(client_key() + settings + "".join(
        provider(up, name, keys=f'["sk-{name}-123456"]', limits="{concurrency = 9}") for up, name in zip(ups, names, strict=True)))
    return *ups, base_url


def answer(stream, text, delay_s=0.0):
    said = say.stream(text) if stream else say.reply(text)
    return said.later(delay_s) if delay_s else said


def text_of(got):
    return got.text if got.frames else got.json["choices"][0]["message"]["content"]


async def rests(gateway):
    """Nothing is under way: no connection, no request, no attempt, no task, no place taken. Within a second."""
    parts = gateway.listener.parts

    def left():
        return (parts.transports["network"].open_connections(), parts.inflight.count, len(parts.inflight.attempts),
                [row["running"] for row in parts.limits.snapshot(0.0) if row["running"]],
                [task for task in asyncio.all_tasks() if "tried" in repr(task)])
    for _ in range(100):
        if left() == (0, 0, 0, [], []):
            return True
        await asyncio.sleep(0.01)
    raise AssertionError(left())


@pytest.mark.parametrize("stream", [True, False])
async def test_the_second_answers_where_the_first_is_silent(gateway, upstream, stream):
    a, b, base_url = await two(gateway, upstream, say.hang(), answer(stream, "from b"))
    got = await ask(base_url, stream=stream)
    assert (got.status, text_of(got), got.headers["X-Routed-Via"]) == (200, "from b", "b/m")
    assert (got.headers["X-Fallback-Attempts"], got.headers["X-Fallback-Trail"]) == ("1", "a/m key1=hedged")
    await a.until(lambda: not a.open_connections)
    assert await rests(gateway)
    assert gateway.listener.parts.health.snapshot(0.0) == []


@pytest.mark.parametrize("stream", [True, False])
async def test_the_first_answers_where_it_is_only_slow(gateway, upstream, stream):
    a, b, base_url = await two(gateway, upstream, answer(stream, "from a", 0.3), say.hang())
    got = await ask(base_url, stream=stream)
    assert (text_of(got), got.headers["X-Routed-Via"], got.headers["X-Fallback-Trail"]) == ("from a", "a/m", "b/m key2=hedged")
    await b.until(lambda: b.requests and not b.open_connections)
    assert await rests(gateway)
    assert gateway.listener.parts.health.snapshot(0.0) == []


async def test_who_answers_in_time_has_no_rival(gateway, upstream):
    a, b, base_url = await two(gateway, upstream, say.stream("from a"), say.stream("from b"), RACE.replace("0.1\n", "5\n"))
    got = await ask(base_url, stream=True)
    assert got.text == "from a" and "X-Fallback-Trail" not in got.headers and not b.requests


async def test_who_has_begun_to_think_is_not_raced_against(gateway, upstream):
    thinking = say.script(say.Head(200, say.SSE), say.Send(say.frame(reasoning_content="hmm")), say.Wait(0.8),
                          *say.stream("from a").steps[1:])
    a, b, base_url = await two(gateway, upstream, thinking, say.stream("from b"), RACE.replace("0.1\n", "0.5\n"))
    assert (await ask(base_url, stream=True)).text == "from a"
    assert not b.requests


@pytest.mark.parametrize("stream", [True, False])
async def test_a_rival_that_fails_costs_nothing(gateway, upstream, stream):
    a, b, base_url = await two(gateway, upstream, answer(stream, "from a", 0.3), say.error(503))
    got = await ask(base_url, stream=stream)
    assert (got.status, text_of(got), got.headers["X-Fallback-Trail"]) == (200, "from a", "b/m key2=overloaded")
    assert [row["provider"] for row in gateway.listener.parts.health.snapshot(asyncio.get_running_loop().time())] == ["b"]


@pytest.mark.parametrize("stream", [True, False])
async def test_where_the_first_fails_the_second_goes_on(gateway, upstream, stream):
    a, b, base_url = await two(gateway, upstream, say.error(500).later(0.2), answer(stream, "from b", 0.3))
    got = await ask(base_url, stream=stream)
    assert (text_of(got), got.headers["X-Fallback-Trail"]) == ("from b", "a/m key1=server_error")
    assert len(b.requests) == 1


async def test_where_both_fail_the_next_is_asked(gateway, upstream):
    good = await upstream(say.stream("from c"))
    a, b = await upstream(say.error(500).later(0.2)), await upstream(say.error(503).later(0.2))
    base_url = await gateway(client_key() + RACE + "".join(
        provider(up, name, keys=f'["sk-{name}-123456"]') for up, name in ((a, "a"), (b, "b"), (good, "c"))))
    got = await ask(base_url, stream=True)
    assert (got.text, got.headers["X-Fallback-Trail"]) == ("from c", "a/m key1=server_error; b/m key2=overloaded")
    assert await rests(gateway)


async def test_where_both_fail_and_nobody_is_left_the_client_hears_of_both(gateway, upstream):
    a, b, base_url = await two(gateway, upstream, say.error(500).later(0.2), say.error(500).later(0.2))
    got = await ask(base_url, stream=True)
    assert got.status == 502 and got.headers["X-Fallback-Attempts"] == "2"
    assert await rests(gateway)


async def test_a_refusal_of_the_request_itself_ends_the_race(gateway, upstream):
    a, b, base_url = await two(gateway, upstream, say.hang(), say.error(400, "messages: field required", type="invalid_request_error"))
    got = await ask(base_url, stream=True)
    assert got.status == 400
    await a.until(lambda: not a.open_connections)
    assert await rests(gateway)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_takes_both_along(gateway, upstream, stream):
    a, b, base_url = await two(gateway, upstream, say.hang(), say.hang())
    reader, writer = await leave(base_url, stream)
    await b.until(lambda: b.busy == 1)
    writer.transport.abort()
    await a.until(lambda: not a.open_connections, 1.0)
    await b.until(lambda: not b.open_connections, 1.0)
    assert await rests(gateway)
    assert gateway.listener.parts.health.snapshot(0.0) == []


async def test_a_winner_that_breaks_is_told_and_nobody_takes_over(gateway, upstream):
    a, b, base_url = await two(gateway, upstream, say.hang(), say.stream("one ", "two").but(say.Wait(0.05), say.Reset(), after=3))
    got = await ask(base_url, stream=True)
    assert got.text == "one two" and got.error is not None and got.done == 1
    await a.until(lambda: not a.open_connections)
    assert await rests(gateway)


async def test_only_a_share_of_the_requests_is_asked_twice(gateway, upstream):
    a, b, base_url = await two(gateway, upstream, lambda asked: say.stream("from a").later(0.15), say.hang(),
                               RACE.replace("1.0", "0.25").replace("0.1\n", "0.03\n"))
    for _ in range(9):
        assert (await ask(base_url, stream=True)).text == "from a"
    assert len(b.requests) == 1 + 2            # one to begin with, then one in four
    assert gateway.listener.parts.extras.hedges.spent == 3


async def test_without_a_setting_the_targets_own_p95_decides(gateway, upstream):
    n = [0]

    def first(asked):
        n[0] += 1
        return say.stream("from a") if n[0] <= 10 else say.hang()
    a, b, base_url = await two(gateway, upstream, first, say.stream("from b"), RACE.replace("0.1\n", "0\n"))
    for _ in range(10):
        assert (await ask(base_url, stream=True)).text == "from a"
    assert not b.requests
    got = await ask(base_url, stream=True)
    assert (got.text, got.headers["X-Fallback-Trail"]) == ("from b", "a/m key1=hedged")


async def test_a_model_with_one_target_has_no_rival(gateway, upstream):
    up = await upstream(say.stream("late").later(0.2))
    base_url = await gateway(client_key() + RACE + provider(up, keys='["sk-one-123456", "sk-two-123456"]'))
    got = await ask(base_url, stream=True)
    assert got.text == "late" and len(up.requests) == 1


async def test_who_rests_is_no_rival(gateway, upstream):
    a, b, base_url = await two(gateway, upstream, [say.error(401, "bad key"), say.stream("late").later(0.25)], say.stream("from b"))
    assert (await ask(base_url, stream=True)).text == "from b"
    b.answer = say.stream("late").later(0.25)
    got = await ask(base_url, {"model": "b/m", "messages": [{"role": "user", "content": "hi"}]}, stream=True, headers=AUTH)
    assert got.status == 200 and len(a.requests) == 1


PRICED = '[{id = "m", max_output = 1000, price = {input = 1.0, output = 1.0}}]'


@pytest.mark.parametrize(("budget", "n_asked"), [("0.0015", 0), ("0.0100", 1)])
async def test_a_key_whose_budget_has_no_room_for_two_is_not_asked_twice(gateway, upstream, budget, n_asked):
    a, b = await upstream(say.stream("from a").later(0.3)), await upstream(say.hang())
    base_url = await gateway(client_key(budget_usd_day=budget) + RACE + provider(a, "a", models=PRICED) + provider(b, "b", models=PRICED))
    assert (await ask(base_url, stream=True)).text == "from a"
    assert len(b.requests) == n_asked
    assert await rests(gateway)
    assert all(purse.held == 0 for purse in gateway.listener.parts.budgets._purses.values())
