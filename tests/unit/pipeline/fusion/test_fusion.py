"""Several answer one request at once, a judge makes one answer of it, and the client gets it in its own words."""
import asyncio
import json

import pytest

from gateway.mock import script as say
from tests.talk import ask
from tests.unit.pipeline.fusion.panels import ASK, FAST, calling, extras, house, judges, member, prompt

TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}},
                                                                           "required": ["at"]}}}]


async def rests(gateway):
    """Nothing is under way any more, within a second."""
    parts = gateway.listener.parts

    def left():
        return (parts.inflight.count, len(parts.inflight.attempts), parts.transports["network"].open_connections(),
                [task for task in asyncio.all_tasks() if "Seat" in repr(task) or "tried" in repr(task)])
    for _ in range(100):
        if left() == (0, 0, 0, []):
            return True
        await asyncio.sleep(0.01)
    raise AssertionError(left())


@pytest.mark.parametrize("stream", [True, False])
async def test_a_judge_writes_one_answer_of_many(gateway, upstream, stream):
    ups, base_url, calls = await house(gateway, upstream, member("Rayleigh."), member("It scatters."), member("Blue light."))
    got = await ask(base_url, ASK, stream=stream)
    assert got.status == 200
    assert (got.text if stream else got.json["choices"][0]["message"]["content"]) == "The verdict."
    assert got.headers["X-Routed-Via"] == "fusion(a/m-a+b/m-b+c/m-c -> a/m-a)"
    assert "X-Fallback-Trail" not in got.headers
    assert [len(up.requests) for up in ups] == [2, 1, 1]
    said = prompt(ups[0])
    assert all(draft in said for draft in ("Rayleigh.", "It scatters.", "Blue light.", "Why is the sky blue?"))
    assert "m-b" not in ups[0].requests[1].body.decode() and not any(map(judges, ups[1].requests))
    [call] = calls
    assert (call.outcome, call.finish, call.strategy, call.routed) == ("ok", "stop", "fusion", got.headers["X-Routed-Via"])
    assert [(attempt.label, attempt.role, attempt.committed) for attempt in call.attempts] == [
        ("a/m-a", "panel", True), ("b/m-b", "panel", True), ("c/m-c", "panel", True), ("a/m-a", "judge", True)]
    assert (call.usage.input, call.usage.output) == (20, 28)
    assert await rests(gateway)


async def test_the_stream_is_one_of_chat_to_whoever_knows_no_panels(gateway, upstream):
    ups, base_url, _ = await house(gateway, upstream, member("Rayleigh."), member("It scatters."))
    got = await ask(base_url, {**ASK, "stream_options": {"include_usage": True}}, stream=True)
    told = extras(got)
    assert {(one["event"], one["platform"]) for one in told[:2]} == {("panel", "a"), ("panel", "b")}
    assert told[2] == {"event": "judge", "platform": "a", "model": "m-a"} and len(told) == 3
    assert {one.get("content") for one in told} == {"Rayleigh.", "It scatters.", None}
    assert all(frame["choices"] == [{"index": 0, "delta": {}, "finish_reason": None}] for frame in got.frames if "_fusion" in frame)
    assert len({frame["id"] for frame in got.frames}) == 1 and got.frames[0]["id"].startswith("chatcmpl-")
    assert (got.text, got.finishes, got.done) == ("The verdict.", ["stop"], 1)
    assert [frame["usage"]["total_tokens"] for frame in got.frames if frame.get("usage")] == [36]


async def test_a_whole_answer_says_who_made_it(gateway, upstream):
    ups, base_url, _ = await house(gateway, upstream, member("Rayleigh."), member("It scatters."))
    got = await ask(base_url, ASK)
    assert got.json["_fusion"] == {"panel": [{"platform": "a", "model": "m-a"}, {"platform": "b", "model": "m-b"}],
                                   "judge": {"platform": "a", "model": "m-a"}, "synthesized": True}
    assert "x_fusion" not in got.json and got.json["usage"]["total_tokens"] == 36
    got = await ask(base_url, {**ASK, "fusion": {"expose_panel": True, "models": ["b/m-b", "nosuch", "m-a", "b/m-b"]}})
    assert got.json["x_fusion"] == {
        "strategy": "synthesize", "synthesized": True, "judge": {"platform": "b", "model": "m-b"}, "panel_requested": 2,
        "dropped": ["nosuch"], "panel": [
            {"platform": "b", "model": "m-b", "status": "ok", "content": "It scatters."},
            {"platform": "a", "model": "m-a", "status": "ok", "content": "Rayleigh."}]}


async def test_the_request_says_who_sits_there_and_who_judges(gateway, upstream):
    ups, base_url, _ = await house(gateway, upstream, *[member(f"from {name}", f"judged by {name}") for name in "abcd"])
    got = await ask(base_url, {**ASK, "fusion": {"models": ["m-c", "m-b"], "judge": "d/m-d"}})
    assert got.json["choices"][0]["message"]["content"] == "judged by d"
    assert got.headers["X-Routed-Via"] == "fusion(c/m-c+b/m-b -> d/m-d)"
    assert [len(up.requests) for up in ups] == [0, 1, 1, 1]
    assert all(b'"fusion"' not in asked.body for up in ups for asked in up.requests)
    got = await ask(base_url, {**ASK, "fusion": {"k": 2, "judge": "c/m-c"}})
    assert got.headers["X-Routed-Via"] == "fusion(a/m-a+b/m-b -> c/m-c)"


async def test_best_of_takes_the_longest_whole_answer_as_it_is(gateway, upstream):
    ups, base_url, calls = await house(gateway, upstream, member("short"), member("the longest of all"), member("longer"))
    for stream in (False, True):
        got = await ask(base_url, {**ASK, "fusion": {"strategy": "best_of"}}, stream=stream)
        assert (got.text if stream else got.json["choices"][0]["message"]["content"]) == "the longest of all"
        assert got.headers["X-Routed-Via"] == "fusion(a/m-a+b/m-b+c/m-c -> b/m-b)"
        assert (calls[-1].outcome, calls[-1].finish, len(calls[-1].attempts), calls[-1].usage.total) == ("ok", "stop", 3, 36)
    assert not any(judges(asked) for up in ups for asked in up.requests)


async def test_a_cut_answer_is_not_the_best_however_long(gateway, upstream):
    ups, base_url, _ = await house(gateway, upstream, member("whole"), member(say.reply("a long one that was cut", finish="length")))
    got = await ask(base_url, {**ASK, "fusion": {"strategy": "best_of"}})
    assert got.json["choices"][0]["message"]["content"] == "whole"


# ---------------------------------------------------------------- tools
@pytest.mark.parametrize("stream", [True, False])
async def test_calls_that_most_agree_on_leave_as_they_came(gateway, upstream, stream):
    here, there = calling(("look", '{"at": "here"}')), calling(("look", '{"at":"there"}'), ("look", '{"at":"up"}'))
    ups, base_url, calls = await house(gateway, upstream, member(here), member(there), member("I would look."), member(there))
    got = await ask(base_url, {**ASK, "tools": TOOLS}, stream=stream)
    message = got.json["choices"][0]["message"] if not stream else None
    made = message["tool_calls"] if message else [call for frame in got.frames for choice in frame["choices"]
                                                  for call in choice["delta"].get("tool_calls", [])]
    assert [(call["id"], json.loads(call["function"]["arguments"])) for call in made] == [
        ("call_0", {"at": "there"}), ("call_1", {"at": "up"})]
    if stream:
        assert [call["index"] for call in made] == [0, 1] and got.finishes == ["tool_calls"] and got.done == 1
        assert extras(got)[-1] == {"event": "tool_call", "platform": "b", "model": "m-b"}
    else:
        assert extras(got)["tool_call_winner"] == {"platform": "b", "model": "m-b"}
    assert got.headers["X-Routed-Via"] == "fusion(a/m-a+b/m-b+c/m-c+d/m-d -> tool_call:b/m-b)"
    assert calls[0].finish == "tool_calls" and not any(judges(asked) for up in ups for asked in up.requests)


async def test_calls_that_break_their_schema_lose_to_those_that_fit(gateway, upstream):
    wrong = calling(("look", '{"at": 7}'))
    ups, base_url, _ = await house(gateway, upstream, member(wrong), member(wrong), member(calling(("look", '{"at":"x"}'))))
    got = await ask(base_url, {**ASK, "tools": TOOLS})
    assert json.loads(got.json["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]) == {"at": "x"}


async def test_a_judge_is_offered_no_tools_and_its_words_are_no_calls(gateway, upstream):
    ups, base_url, _ = await house(gateway, upstream, member("one"), member("two"))
    assert (await ask(base_url, {**ASK, "tools": TOOLS, "tool_choice": "auto"})).status == 200
    asked = json.loads(ups[0].requests[1].body)
    assert "tools" not in asked and "tool_choice" not in asked
    history = [{"role": "user", "content": "look"},
               {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
               {"role": "tool", "tool_call_id": "c1", "content": "seen"}]
    assert (await ask(base_url, {**ASK, "messages": history, "tools": TOOLS})).status == 200
    asked = json.loads(ups[0].requests[3].body)
    assert asked["tool_choice"] == "none" and [tool["function"]["name"] for tool in asked["tools"]] == ["look"]


# ---------------------------------------------------------------- structured output
async def test_the_judges_answer_keeps_the_format(gateway, upstream):
    form = {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": {
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}}}
    ups, base_url, calls = await house(gateway, upstream, member('{"n": 1}', "no JSON at all"), member('{"n": 2}', '{"n": 3}'),
                                       member("not JSON either"))
    got = await ask(base_url, {**ASK, "response_format": form}, stream=True)
    assert json.loads(got.text) == {"n": 3}
    assert got.headers["X-Routed-Via"] == "fusion(a/m-a+b/m-b -> b/m-b)"
    assert got.headers["X-Fallback-Trail"] == "c/m-c key3=format_ignored; a/m-a key1=format_ignored"
    got = await ask(base_url, {**ASK, "response_format": form, "fusion": {"judge": "a/m-a"}})
    assert json.loads(got.json["choices"][0]["message"]["content"]) in ({"n": 1}, {"n": 2}) and extras(got)["synthesized"] is False


# ---------------------------------------------------------------- failures
async def test_who_fails_is_replaced_by_the_next_in_order(gateway, upstream):
    ups, base_url, calls = await house(gateway, upstream, member(say.error(500)), member("b"), member("c"), member("d"),
                                       more=FAST.replace("[fusion]", "[fusion]\nk = 2"))
    got = await ask(base_url, ASK)
    assert got.headers["X-Routed-Via"] == "fusion(b/m-b+c/m-c -> b/m-b)"
    assert got.headers["X-Fallback-Trail"] == "a/m-a key1=server_error"
    assert not ups[3].requests
    assert [row["provider"] for row in gateway.listener.parts.health.snapshot(asyncio.get_running_loop().time())] == ["a"]


async def test_a_listed_panel_is_not_refilled_and_one_answer_is_delivered(gateway, upstream):
    ups, base_url, calls = await house(gateway, upstream, member(say.error(503)), member("the only one"), member("c"))
    got = await ask(base_url, {**ASK, "fusion": {"models": ["a/m-a", "b/m-b"]}}, stream=True)
    assert (got.text, got.headers["X-Routed-Via"]) == ("the only one", "fusion(b/m-b -> b/m-b)")
    assert not ups[2].requests and len(ups[1].requests) == 1
    told = [(one["event"], one.get("status")) for one in extras(got)]
    assert sorted(told[:2]) == [("panel", "failed"), ("panel", "ok")] and told[2:] == [("best", None)]


@pytest.mark.parametrize("verdict", [say.error(500), say.stream(), say.error(400, "no", type="invalid_request_error")])
@pytest.mark.parametrize("stream", [True, False])
async def test_where_the_judge_fails_the_best_of_the_panel_answers(gateway, upstream, verdict, stream):
    ups, base_url, calls = await house(gateway, upstream, member("short"), member("the longer one"), member("c", verdict))
    got = await ask(base_url, {**ASK, "fusion": {"judge": "c/m-c", "models": ["m-a", "m-b"]}}, stream=stream)
    assert got.status == 200
    assert (got.text if stream else got.json["choices"][0]["message"]["content"]) == "the longer one"
    assert calls[0].outcome == "ok" and calls[0].attempts[-1].role == "judge" and calls[0].attempts[-1].error is not None


async def test_the_next_judge_takes_over_before_the_first_word(gateway, upstream):
    ups, base_url, _ = await house(gateway, upstream, member("a", say.error(500)), member("b", "from b"))
    got = await ask(base_url, ASK, stream=True)
    assert (got.text, got.headers["X-Routed-Via"]) == ("from b", "fusion(a/m-a+b/m-b -> b/m-b)")


async def test_a_judge_that_breaks_in_the_middle_is_told(gateway, upstream):
    ups, base_url, calls = await house(gateway, upstream, member("a", say.half_frame("The ver")), member("b"))
    got = await ask(base_url, ASK, stream=True)
    assert got.text == "The ver" and got.error and got.finishes == []
    assert (calls[0].outcome, calls[0].error.kind) == ("broken", "truncated")


@pytest.mark.parametrize(("answers", "status"), [
    ([say.error(429, "slow down", headers={"Retry-After": "7"})] * 2, 429), ([say.error(401, "bad key")] * 2, 502),
    ([say.error(503), say.error(429)], 502), ([say.error(400, "messages: bad", type="invalid_request_error")] * 2, 400)])
async def test_where_nothing_worked_the_status_is_honest(gateway, upstream, answers, status):
    ups, base_url, calls = await house(gateway, upstream, *map(member, answers))
    got = await ask(base_url, ASK, stream=True)
    assert got.status == status and got.json["error"]["message"]
    assert got.headers.get("Retry-After") == ("7" if status == 429 else None)
    assert calls[0].outcome == "failed" and len(calls[0].attempts) == 2
    assert await rests(gateway)


async def test_several_choices_and_odd_wishes_are_refused_by_name(gateway, upstream):
    ups, base_url, _ = await house(gateway, upstream, member("a"), member("b"))
    for body, param in (({"n": 2}, "n"), ({"fusion": {"k": "many"}}, "fusion.k"), ({"fusion": {"judge": "nosuch"}}, "fusion.judge"),
                        ({"fusion": {"models": ["nosuch"]}}, "fusion.models"), ({"fusion": {"strategy": "vote"}}, "fusion.strategy")):
        got = await ask(base_url, {**ASK, **body})
        assert (got.json["error"]["param"], got.status // 100) == (param, 4), body
    assert (await ask(base_url, {**ASK, "fusion": None})).status == 200
    got = await ask(base_url, {**ASK, "model": "fusion:nosuch"})
    assert (got.status, got.json["error"]["code"]) == (404, "model_not_found")


# ---------------------------------------------------------------- who sits there
async def test_who_cannot_serve_the_request_does_not_sit_there(gateway, upstream):
    blind = provider_with("x", "vision = false")
    ups, base_url, _ = await house(gateway, upstream, member("a"), member("b"), more=FAST + blind)
    seen = {"role": "user", "content": [{"type": "text", "text": "what?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}
    got = await ask(base_url, {**ASK, "messages": [seen]})
    assert got.headers["X-Routed-Via"].startswith("fusion(a/m-a+b/m-b -> ")
    got = await ask(base_url, {**ASK, "messages": [seen], "fusion": {"models": ["x/m-x", "m-a", "m-b"], "expose_panel": True}})
    assert got.json["x_fusion"]["dropped"] == ["x/m-x"]


def provider_with(name, fact):
    return (f'[[providers]]\nid = "{name}"\nbase_url = "http://127.0.0.1:9/v1"\napi_keys = ["k-{name}-1234"]\n'
            f'models = [{{id = "m-{name}", {fact}}}]\n')


async def test_a_single_target_is_simply_asked(gateway, upstream):
    ups, base_url, calls = await house(gateway, upstream, member("alone"))
    got = await ask(base_url, ASK, stream=True)
    assert (got.text, got.headers["X-Routed-Via"], extras(got)) == ("alone", "a/m-a", [])
    ups, base_url, calls = await house(gateway, upstream, member("a"), member("b"))
    got = await ask(base_url, {**ASK, "fusion": {"models": ["m-b"]}})
    assert got.headers["X-Routed-Via"] == "b/m-b"


async def test_combos_and_axes_may_be_panels(gateway, upstream):
    best = '[[combos]]\nname = "best"\nstrategy = "fusion"\ntargets = ["c/m-c", "a/m-a"]\njudge = "b/m-b"\n'
    plain = '[[combos]]\nname = "plain"\ntargets = ["b/m-b", "c/m-c"]\n'
    ups, base_url, _ = await house(gateway, upstream, member("a"), member("b"), member("c"), more=FAST + best + plain)
    for model, via in (("best", "fusion(c/m-c+a/m-a -> b/m-b)"), ("combo/best", "fusion(c/m-c+a/m-a -> b/m-b)"),
                       ("fusion:plain", "fusion(b/m-b+c/m-c -> b/m-b)")):
        got = await ask(base_url, {**ASK, "model": model})
        assert got.headers["X-Routed-Via"] == via
    got = await ask(base_url, {**ASK, "model": "fusion:fast"})
    assert got.headers["X-Routed-Via"].startswith("fusion(")


async def test_the_operators_default_may_be_a_panel(gateway, upstream):
    ups, base_url, _ = await house(gateway, upstream, member("a"), member("b"), more=FAST + '[routing]\nstrategy = "fusion"\n')
    assert (await ask(base_url, {**ASK, "model": "auto"})).headers["X-Routed-Via"] == "fusion(a/m-a+b/m-b -> a/m-a)"


async def test_a_key_sits_only_with_whom_it_may_use(gateway, upstream):
    from tests.conftest import client_key
    ups, base_url, _ = await house(gateway, upstream, member("a"), member("b"), member("c"),
                                   key=client_key(models='["m-a", "m-b"]'))
    got = await ask(base_url, ASK)
    assert got.headers["X-Routed-Via"] == "fusion(a/m-a+b/m-b -> a/m-a)"
    got = await ask(base_url, {**ASK, "fusion": {"models": ["m-a", "m-b", "m-c"], "judge": "m-c"}})
    assert got.status == 403 and got.json["error"]["param"] == "fusion.judge"


async def test_a_panel_is_never_answered_from_the_cache(gateway, upstream):
    ups, base_url, _ = await house(gateway, upstream, member("a"), member("b"), more=FAST + "[cache]\nenabled = true\n")
    for n in (1, 2):
        got = await ask(base_url, ASK)
        assert got.headers["X-FreeLLM-Cache"] == "OFF" and len(ups[1].requests) == n


async def test_members_answer_whole_and_under_the_clients_limits(gateway, upstream):
    ups, base_url, _ = await house(gateway, upstream, member("a"), member("b"))
    await ask(base_url, {**ASK, "max_tokens": 50, "temperature": 0.3, "stream_options": {"include_usage": True}}, stream=True)
    first = json.loads(ups[0].requests[0].body)
    assert (first["max_tokens"], first["temperature"], first.get("stream", False), first["model"]) == (50, 0.3, False, "m-a")
    assert "stream_options" not in first
    judge = json.loads(ups[0].requests[1].body)
    assert (judge["max_tokens"], judge["temperature"], judge["stream"]) == (50, 0.3, True)


