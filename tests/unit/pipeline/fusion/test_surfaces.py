"""On every surface the last word is told in that surface's own language, and nothing there speaks of panels but chat."""
import json

import pytest

from gateway.core.keys import NANOS
from gateway.mock import script as say
from tests.conftest import KEY, client_key
from tests.talk import ask
from tests.unit.pipeline.fusion.panels import ASK, FAST, calling, house, judges, member

GOOGLE = {"x-goog-api-key": KEY}
SURFACES = {
    "completions": ("/v1/completions", {"model": "fusion", "prompt": "Why?"}, None),
    "responses": ("/v1/responses", {"model": "fusion", "input": "Why?"}, None),
    "messages": ("/v1/messages", {"model": "fusion", "max_tokens": 99, "messages": [{"role": "user", "content": "Why?"}]}, None),
    "gemini": ("/v1beta/models/fusion:{}", {"contents": [{"role": "user", "parts": [{"text": "Why?"}]}]}, GOOGLE),
    "ollama": ("/api/chat", {"model": "fusion", "messages": [{"role": "user", "content": "Why?"}]}, None),
}
TEXT = {                                             # where a whole answer has its text
    "completions": lambda doc: doc["choices"][0]["text"],
    "responses": lambda doc: doc["output"][-1]["content"][0]["text"],
    "messages": lambda doc: doc["content"][-1]["text"],
    "gemini": lambda doc: doc["candidates"][0]["content"]["parts"][0]["text"],
    "ollama": lambda doc: doc["message"]["content"],
}
ENDS = {"completions": b"[DONE]", "responses": b"response.completed", "messages": b"message_stop", "gemini": b'"finishReason":"STOP"',
        "ollama": b'"done":true'}
FAILS = {"completions": b'"error"', "responses": b"response.failed", "messages": b"event: error", "gemini": b'"error"',
         "ollama": b'"error"'}
OLLAMA = '[ollama]\nmode = "key"\n'


async def said(base_url, name, stream, **more):
    path, body, headers = SURFACES[name]
    body = {**body, **more}
    if name == "gemini":
        return await ask(base_url, body, path=path.format("streamGenerateContent?alt=sse" if stream else "generateContent"),
                         headers=headers)
    return await ask(base_url, body, path=path, headers=headers, stream=stream)


@pytest.mark.parametrize("name", SURFACES)
async def test_a_judges_answer(gateway, upstream, name):
    ups, base_url, calls = await house(gateway, upstream, member("Rayleigh."), member("It scatters."), more=FAST + OLLAMA)
    got = await said(base_url, name, False)
    assert (got.status, TEXT[name](got.json)) == (200, "The verdict.")
    assert got.headers["X-Routed-Via"] == "fusion(a/m-a+b/m-b -> a/m-a)" and b"_fusion" not in got.body
    got = await said(base_url, name, True)
    assert got.status == 200 and ENDS[name] in got.body and b"_fusion" not in got.body and b"verdi" not in got.body.replace(b"verdict", b"")
    assert [(call.outcome, len(call.attempts)) for call in calls] == [("ok", 3), ("ok", 3)]


@pytest.mark.parametrize("name", SURFACES)
async def test_the_best_of_the_panel(gateway, upstream, name):
    ups, base_url, calls = await house(gateway, upstream, member("no"), member("It scatters."), more=FAST + OLLAMA)
    got = await said(base_url, name, False, fusion={"strategy": "best_of"})
    assert (got.status, TEXT[name](got.json)) == (200, "It scatters.")
    got = await said(base_url, name, True, fusion={"strategy": "best_of"})
    assert b"It scatters." in got.body and ENDS[name] in got.body


@pytest.mark.parametrize("name", SURFACES)
async def test_a_judge_that_breaks(gateway, upstream, name):
    ups, base_url, calls = await house(gateway, upstream, member("a", say.half_frame("The ver")), member("b"), more=FAST + OLLAMA)
    got = await said(base_url, name, True)
    assert got.status == 200 and b"The ver" in got.body and FAILS[name] in got.body and calls[0].outcome == "broken"


@pytest.mark.parametrize("name", SURFACES)
async def test_a_panel_that_fails(gateway, upstream, name):
    ups, base_url, calls = await house(gateway, upstream, member(say.error(429)), member(say.error(429)), more=FAST + OLLAMA)
    for stream in (True, False):
        got = await said(base_url, name, stream)
        assert got.status == 429 and got.json["error"]


async def test_calls_on_messages(gateway, upstream):
    look = member(calling(("look", '{"at": "x"}')))
    ups, base_url, _ = await house(gateway, upstream, look, look)
    got = await said(base_url, "messages", False, tools=[{"name": "look", "input_schema": {"type": "object"}}])
    assert (got.json["stop_reason"], got.json["content"][-1]["input"]) == ("tool_use", {"at": "x"})
    assert not any(judges(asked) for up in ups for asked in up.requests)


async def test_a_kept_response_is_the_last_word(gateway, upstream):
    ups, base_url, _ = await house(gateway, upstream, member("one"), member("two"))
    first = await said(base_url, "responses", False)
    kept = await ask(base_url, method="GET", path=f"/v1/responses/{first.json['id']}")
    assert TEXT["responses"](kept.json) == "The verdict."
    await said(base_url, "responses", False, previous_response_id=first.json["id"], input="And now?")
    asked = [message["content"] for message in json.loads(ups[1].requests[-1].body)["messages"]]
    assert asked == ["Why?", "The verdict.", "And now?"]


# ---------------------------------------------------------------- money
PRICED = '[{id = "m", max_output = 1000, price = {input = 1.0, output = 10.0}}]'


async def test_a_budget_covers_the_panel_and_its_judge(gateway, upstream):
    from tests.conftest import provider
    ups = [await upstream(member(text)) for text in ("one", "two")]
    tables = "".join(provider(up, name, PRICED, keys=f'["sk-{name}-123456"]') for up, name in zip(ups, "ab", strict=True))
    body = {**ASK, "max_tokens": 100, "fusion": {"models": ["a/m", "b/m"]}}
    base_url = await gateway(client_key(budget_usd_day="0.0025") + FAST + tables)
    got = await ask(base_url, body)
    assert got.status == 402 and not ups[0].requests                 # three answers of $0.001 may come
    base_url = await gateway(client_key(budget_usd_day="0.0035") + FAST + tables)
    assert (await ask(base_url, body)).status == 200
    budgets = gateway.listener.parts.budgets
    assert budgets.spent("key:test")[0] / NANOS == pytest.approx(3 * (5 * 1 + 7 * 10) / 1e6)
    assert {purse.held for purse in budgets._purses.values()} == {0}


async def test_members_of_unknown_price_do_not_sit_there_on_a_budget(gateway, upstream):
    from tests.conftest import provider
    ups = [await upstream(member(text)) for text in ("one", "two", "three")]
    tables = "".join(provider(up, name, models, keys=f'["sk-{name}-123456"]')
                     for up, name, models in zip(ups, "abc", (PRICED, '["m"]', PRICED), strict=True))
    base_url = await gateway(client_key(budget_usd_day="1.0") + FAST + tables)
    got = await ask(base_url, {**ASK, "fusion": {"models": ["a/m", "b/m", "c/m"]}})
    assert got.headers["X-Routed-Via"] == "fusion(a/m+c/m -> a/m)" and not ups[1].requests


async def test_the_ledger_knows_what_each_attempt_was_for(gateway, upstream):
    base_url = (await house(gateway, upstream, member("one"), member("two"), more='[store]\nurl = "memory:"\n'))[1]
    await ask(base_url, ASK)
    from gateway.store.reading import attempt_row
    from gateway.store.records import ATTEMPT, attempt_values
    [call] = gateway.listener.desk.ground.journal.calls
    rows = [attempt_row(attempt_values(1, n, attempt, call.started)[1:]) for n, attempt in enumerate(call.attempts, 1)]
    assert [(row.role, row.drift) for row in rows] == [("panel", True), ("panel", True), ("judge", True)] and "role" in ATTEMPT
