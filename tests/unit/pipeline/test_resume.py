"""An answer that breaks off in the middle is gone on with by the next target; the client reads one text, or is told."""
import asyncio
import json
from os.path import commonprefix

import pytest

from gateway.mock import script as say
from tests.chaos.test_disconnect import leave
from tests.conftest import client_key, provider
from tests.talk import ask
from tests.unit.pipeline.test_explaining import Kept

ON = '[stream]\nresume = "continue"\n'
TEXT = "The sky is blue, since air\n\nscatters *short* waves."
SURFACES = {
    "chat": ("/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "Why?"}]}, b"[DONE]"),
    "completions": ("/v1/completions", {"model": "m", "prompt": "Why?"}, b"[DONE]"),
    "responses": ("/v1/responses", {"model": "m", "input": "Why?"}, b"event: response.completed"),
    "messages": ("/v1/messages", {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "Why?"}]}, b"event: message_stop"),
    "gemini": ("/v1beta/models/m:streamGenerateContent?alt=sse", {"contents": [{"role": "user", "parts": [{"text": "Why?"}]}]},
               b'"finishReason":"STOP"'),
    "ollama": ("/api/chat", {"model": "m", "messages": [{"role": "user", "content": "Why?"}]}, b'"done_reason":"stop"'),
}
FAILS = {"chat": b'"error"', "completions": b'"error"', "responses": b"response.failed", "messages": b"event: error",
         "gemini": b'"error"', "ollama": b'"error"'}


def told(name, body):
    """The text that a surface's stream says."""
    docs = [json.loads(line.removeprefix(b"data: ")) for line in body.splitlines()
            if line.startswith((b"data: {", b"{"))]
    pick = {
        "chat": lambda d: "".join(c["delta"].get("content") or "" for c in d.get("choices", [])),
        "completions": lambda d: "".join(c["text"] for c in d.get("choices", [])),
        "responses": lambda d: d["delta"] if d["type"] == "response.output_text.delta" else "",
        "messages": lambda d: d["delta"].get("text", "") if d["type"] == "content_block_delta" else "",
        "gemini": lambda d: "".join(p.get("text", "") for c in d.get("candidates", []) for p in c.get("content", {}).get("parts", [])),
        "ollama": lambda d: d.get("message", {}).get("content", ""),
    }[name]
    return "".join(pick(doc) for doc in docs)


def breaks(sent):
    """Says so much, then its connection ends."""
    return say.stream(sent).but(say.Close(), after=2)


def sent_of(asked):
    """The beginning that a target is given to go on with."""
    return next(m["content"] for m in reversed(asked.json()["messages"]) if m["role"] == "assistant")


def repeats(asked):
    """Obeys: the last words, then the rest."""
    last = asked.json()["messages"][-1]["content"].partition("<last_words>")[2].partition("</last_words>")[0]
    return say.stream(*pieces(last + TEXT[len(sent_of(asked).rstrip()):]))


def goes_on(asked):
    """Obeys in its own way: the rest, from the very next character."""
    return say.stream(*pieces(TEXT[len(sent_of(asked)):]))


def pieces(text):
    return [text[i:i + 9] for i in range(0, len(text), 9)]


def forgiven(gateway):
    """Who broke off is as good as new."""
    for target in gateway.listener.desk.ground.catalog.targets:
        for candidate in target.candidates:
            gateway.listener.parts.health.cleared(candidate)


async def house(gateway, upstream, *answers, more="", **settings):
    ups = [await upstream(answer) for answer in answers]
    base_url = await gateway(client_key() + ON + '[ollama]\nmode = "key"\n' + more + "".join(
        provider(up, name, keys=f'["sk-{name}-123456"]', **settings) for up, name in zip(ups, "abc", strict=False)))
    kept = gateway.listener.desk.ground.journal = Kept()
    return ups, base_url, kept.calls


async def said(base_url, name):
    path, body, _ = SURFACES[name]
    return await ask(base_url, body, path=path, stream=None if name == "gemini" else True)


@pytest.mark.parametrize("name", SURFACES)
@pytest.mark.parametrize("obeys", [repeats, goes_on])
async def test_cut_at_every_character_the_client_reads_one_answer(gateway, upstream, name, obeys):
    cut = [0]
    ups, base_url, calls = await house(gateway, upstream, lambda asked: breaks(TEXT[:cut[0]]), obeys)
    for cut[0] in range(1, len(TEXT)):
        got = await said(base_url, name)
        assert (got.status, told(name, got.body)) == (200, TEXT), cut
        assert got.body.count(SURFACES[name][2]) == 1 and FAILS[name] not in got.body
        forgiven(gateway)
    assert all((call.outcome, call.resumed, call.finish) == ("ok", True, "stop") for call in calls) and len(calls) == len(TEXT) - 1


async def test_the_record_has_both_and_what_they_took(gateway, upstream):
    models = '[{id = "m", price = {input = 1.0, output = 10.0}}]'
    ups, base_url, calls = await house(gateway, upstream, breaks(TEXT[:20]), repeats, models=models)
    got = await ask(base_url, {**SURFACES["chat"][1], "stream_options": {"include_usage": True}}, stream=True)
    [call] = calls
    first, second = call.attempts
    assert (first.committed, first.error.kind, first.role, second.role, second.error) == (True, "truncated", "", "resumed", None)
    assert first.usage.estimated and first.usage.output and second.usage.total == 12
    shown = next(frame["usage"] for frame in got.frames if frame.get("usage"))
    assert shown["prompt_tokens"] == first.usage.input + 5 == call.usage.input and shown["completion_tokens"] == first.usage.output + 7
    assert call.cost_usd == pytest.approx(((first.usage.input + 5) + 10 * (first.usage.output + 7)) / 1e6)
    assert got.headers["X-Routed-Via"] == "a/m" and call.decision.endswith("b/m is 2 of 2 by priority; it went on where a/m broke off")
    assert [row["provider"] for row in gateway.listener.parts.health.snapshot(asyncio.get_running_loop().time())] == ["a"]
    assert json.loads(ups[1].requests[0].body)["messages"][1] == {"role": "assistant", "content": TEXT[:20]}


@pytest.mark.parametrize("name", SURFACES)
@pytest.mark.parametrize("strays", [say.stream("I'm sorry, ", "something went wrong. The sky is blue."), say.error(500),
                                    say.stream("The sky is red, and that is all that I have to say about it."), say.stream()])
async def test_who_does_not_go_on_is_told_as_an_error(gateway, upstream, name, strays):
    ups, base_url, calls = await house(gateway, upstream, breaks(TEXT[:20]), strays)
    got = await said(base_url, name)
    assert told(name, got.body) == TEXT[:20] and FAILS[name] in got.body
    assert name in ("chat", "completions") or SURFACES[name][2] not in got.body
    assert (calls[0].outcome, calls[0].error.kind, calls[0].resumed, len(calls[0].attempts)) == ("broken", "truncated", False, 2)


# As long as all that was sent is how the second one begins as well, it is an answer that goes on.
RED = "The sky is red, and that is all that I have to say about it."


@pytest.mark.parametrize(("strays", "first"), [("I'm sorry, something went wrong. The sky is blue.", 1),
                                               (RED, len(commonprefix([RED, TEXT])) + 1)])
async def test_cut_at_every_character_who_does_not_go_on_is_told_as_an_error(gateway, upstream, strays, first):
    cut = [0]
    ups, base_url, calls = await house(gateway, upstream, lambda asked: breaks(TEXT[:cut[0]]), say.stream(*pieces(strays)))
    for cut[0] in range(first, len(TEXT)):
        got = await said(base_url, "chat")
        assert told("chat", got.body) == TEXT[:cut[0]] and FAILS["chat"] in got.body, cut
        forgiven(gateway)
    assert {(call.outcome, call.error.kind, call.resumed) for call in calls} == {("broken", "truncated", False)}


async def test_the_next_but_one_goes_on_where_the_next_does_not(gateway, upstream):
    ups, base_url, calls = await house(gateway, upstream, breaks(TEXT[:20]), say.stream("Sure! Here is the rest of the answer:"), repeats)
    assert told("chat", (await said(base_url, "chat")).body) == TEXT
    assert [(attempt.label, attempt.committed) for attempt in calls[0].attempts] == [("a/m", True), ("b/m", False), ("c/m", True)]
    assert "b" not in {row["provider"] for row in gateway.listener.parts.health.snapshot(asyncio.get_running_loop().time())}


async def test_who_goes_on_may_break_off_as_well(gateway, upstream):
    def half(asked):
        return say.stream(TEXT[:20], TEXT[20:35]).but(say.Close(), after=3)
    ups, base_url, calls = await house(gateway, upstream, breaks(TEXT[:20]), half, repeats)
    assert told("chat", (await said(base_url, "chat")).body) == TEXT
    assert [attempt.committed for attempt in calls[0].attempts] == [True, True, True] and calls[0].outcome == "ok"
    assert sent_of(ups[2].requests[0]) == TEXT[:35]


@pytest.mark.parametrize("why", [
    say.stream(TEXT[:20]).but(say.Send(say.frame(error={"message": "overloaded", "code": 503})), after=2),
    say.stream(TEXT[:20]).but(say.Reset(), after=2), say.half_frame(TEXT[:20])])
async def test_however_it_breaks(gateway, upstream, why):
    ups, base_url, calls = await house(gateway, upstream, why, repeats)
    assert told("chat", (await said(base_url, "chat")).body) == TEXT


async def test_a_stalled_stream_is_gone_on_with(gateway, upstream):
    ups, base_url, calls = await house(gateway, upstream, say.stall(TEXT[:20]), repeats, more="[timeouts]\nidle_s = 0.3\n")
    assert told("chat", (await said(base_url, "chat")).body) == TEXT


async def test_calls_formats_and_whole_answers_break_as_ever(gateway, upstream):
    call = say.tool_stream("look", ['{"at": ', '"x"}']).but(say.Close(), after=2)
    ups, base_url, _ = await house(gateway, upstream, call, say.stream("from b"))
    tools = [{"type": "function", "function": {"name": "look"}}]
    got = await ask(base_url, {**SURFACES["chat"][1], "tools": tools}, stream=True)
    assert got.text == "from b"                                      # nothing had left: the usual way
    ups, base_url, calls = await house(gateway, upstream, say.stream("ab").but(say.Close(), after=2), repeats)
    got = await ask(base_url, {**SURFACES["chat"][1], "n": 2}, stream=True)
    assert got.error and not ups[1].requests


async def test_off_is_off(gateway, upstream):
    ups = [await upstream(breaks(TEXT[:20])), await upstream(repeats)]
    base_url = await gateway(client_key() + provider(ups[0], "a", keys='["sk-a-123456"]') + provider(ups[1], "b", keys='["sk-b-123456"]'))
    got = await said(base_url, "chat")
    assert got.error and got.text == TEXT[:20] and not ups[1].requests


async def test_a_client_that_goes_ends_it(gateway, upstream):
    ups, base_url, calls = await house(gateway, upstream, breaks(TEXT[:20]), say.hang())
    reader, writer = await leave(base_url, True)
    await ups[1].until(lambda: ups[1].busy == 1)
    writer.transport.abort()
    await ups[1].until(lambda: not ups[1].open_connections, 1.0)
    for _ in range(100):
        if calls:
            break
        await asyncio.sleep(0.01)
    assert calls[0].outcome == "client_gone" and gateway.listener.parts.inflight.count == 0


def frames(*docs):
    return [say.Send(b"event: %s\ndata: %s\n\n" % (doc["type"].encode(), json.dumps(doc).encode())) for doc in docs]


def claude(text, whole=True):
    """A stream of Messages; not ``whole``: it breaks off behind this text."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "x", "content": [], "stop_reason": None,
               "usage": {"input_tokens": 5, "output_tokens": 1}}
    steps = frames({"type": "message_start", "message": message},
                   {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                   *[{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}} for piece in pieces(text)])
    ends = frames({"type": "content_block_stop", "index": 0},
                  {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}}, {"type": "message_stop"})
    return say.script(say.Head(200, say.SSE), *steps, *(ends if whole else [say.Close()]))


def begun(asked):
    """Goes on from the beginning that it is given, as older Claude models do."""
    last = asked.json()["messages"][-1]
    assert last["role"] == "assistant"
    sent = last["content"] if isinstance(last["content"], str) else last["content"][0]["text"]
    assert sent == sent.rstrip()                                     # or it is refused
    return claude(TEXT[len(sent):])


async def test_the_claude_of_old_is_given_the_beginning(gateway, upstream):
    cut = [0]
    a, b = await upstream(lambda asked: breaks(TEXT[:cut[0]])), await upstream(begun)
    best = '[[combos]]\nname = "m"\ntargets = ["a/x", "b/claude-3-5-haiku-20241022"]\n'
    base_url = await gateway(client_key() + ON + best + provider(a, "a", '["x"]', keys='["sk-a-123456"]')
                             + provider(b, "b", '["claude-3-5-haiku-20241022"]', keys='["sk-b-123456"]', wire='"anthropic"'))
    for cut[0] in (5, 16, 26, 27, 28, 29, len(TEXT) - 1, len(TEXT)):
        got = await said(base_url, "chat")
        assert (got.text, got.finishes, got.done) == (TEXT, ["stop"], 1), cut
        forgiven(gateway)


async def test_within_one_format_the_frames_stay_one_stream(gateway, upstream):
    cut, haiku = [0], '["claude-3-5-haiku-20241022"]'
    a, b = await upstream(lambda asked: claude(TEXT[:cut[0]], whole=False)), await upstream(begun)
    base_url = await gateway(client_key() + ON + provider(a, "a", haiku, keys='["sk-a-123456"]', wire='"anthropic"')
                             + provider(b, "b", haiku, keys='["sk-b-123456"]', wire='"anthropic"'))
    path, body, _ = SURFACES["messages"]
    for cut[0] in (5, 26, 28, len(TEXT) - 1):
        got = await ask(base_url, {**body, "model": "claude-3-5-haiku-20241022"}, path=path, stream=True)
        assert told("messages", got.body) == TEXT, cut
        assert [frame["type"] for frame in got.frames if "delta" not in frame["type"] and frame["type"] != "ping"] == [
            "message_start", "content_block_start", "content_block_stop", "message_stop"]
        forgiven(gateway)


async def test_responses_stay_one_item(gateway, upstream):
    def frame(doc):
        return b"event: %s\ndata: %s\n\n" % (doc["type"].encode(), json.dumps(doc).encode())

    def stream(text, whole):
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}
        response = {"id": "resp_1", "object": "response", "created_at": 1, "status": "in_progress", "model": "m", "output": []}
        at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        done = {**item, "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]}
        docs = [{"type": "response.created", "response": response}, {"type": "response.output_item.added", "output_index": 0, "item": item},
                {"type": "response.content_part.added", **at, "part": {"type": "output_text", "text": "", "annotations": []}},
                *[{"type": "response.output_text.delta", **at, "delta": piece} for piece in pieces(text)]]
        if whole:
            usage = {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12}
            docs += [{"type": "response.output_text.done", **at, "text": text},
                     {"type": "response.output_item.done", "output_index": 0, "item": done},
                     {"type": "response.completed", "response": {**response, "status": "completed", "output": [done], "usage": usage}}]
        numbered = [{**doc, "sequence_number": n} for n, doc in enumerate(docs)]
        return say.script(say.Head(200, say.SSE), *[say.Send(frame(doc)) for doc in numbered], *([] if whole else [say.Close()]))

    def goes(asked):
        items = asked.json()["input"]
        sent = next(item["content"][0]["text"] for item in items if item.get("role") == "assistant")
        return stream(TEXT[len(sent):], True)
    cut = [0]
    ups, base_url, calls = await house(gateway, upstream, lambda asked: stream(TEXT[:cut[0]], False), goes, wire='"openai-responses"')
    for cut[0] in (5, 26, 28, len(TEXT) - 1):
        got = await said(base_url, "responses")
        assert told("responses", got.body) == TEXT, cut
        numbers = [frame["sequence_number"] for frame in got.frames]
        assert numbers == list(range(len(numbers)))
        last = got.frames[-1]["response"]
        assert (last["status"], last["output"][0]["content"][0]["text"], last["usage"]["output_tokens"] > 7) == ("completed", TEXT, True)
        kept = await ask(base_url, method="GET", path=f"/v1/responses/{last['id']}")
        assert kept.json["output"][0]["content"][0]["text"] == TEXT
        forgiven(gateway)
