"""The door of Messages: its own errors, its own stream, the same promises as everywhere."""
import json

import pytest

from gateway.mock import script as say
from tests.conftest import KEY, client_key, provider
from tests.talk import ask

ASK = {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "hi"}]}
HEADERS = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
PATH = "/v1/messages?beta=true"


@pytest.fixture
def door(gateway, upstream):
    """A gateway with these upstreams, (wire, answer) each; ``door.ups`` are they."""
    async def start(*answers, config=""):
        start.ups = [await upstream(answer) for _, answer in answers]
        return await gateway(client_key() + "".join(
            provider(up, f"u{i}", wire=f'"{wire}"') for i, (up, (wire, _)) in enumerate(zip(start.ups, answers, strict=True))) + config)
    return start


def events(got):
    return [line[7:] for line in got.body.decode().splitlines() if line.startswith("event: ")]


def own(*frames):
    data = b"".join(b"event: %b\ndata: %b\n\n" % (json.loads(frame)["type"].encode(), frame) for frame in frames)
    return say.script(say.Head(200, say.SSE), say.Send(data))


START = b'{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1}}}'
BLOCK = b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}'
DELTA = b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"},"odd":[1,  2]}'
STOP = b'{"type":"content_block_stop","index":0}'
ENDING = b'{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}'
LAST = b'{"type":"message_stop"}'
FRAMES = (START, BLOCK, DELTA, STOP, ENDING, LAST)


async def test_a_stream_of_the_format_passes_frame_by_frame(door):
    got = await ask(await door(("anthropic", own(*FRAMES))), {**ASK, "stream": True}, path=PATH, headers=HEADERS)
    assert got.headers["Content-Type"].startswith("text/event-stream") and got.headers["X-Routed-Via"] == "u0/m"
    assert got.body == b"".join(b"event: %b\ndata: %b\n\n" % (json.loads(f)["type"].encode(), f) for f in FRAMES)


async def test_a_chat_stream_is_told_in_its_grammar(door):
    got = await ask(await door(("openai-chat", say.stream("Hel", "lo"))), {**ASK, "stream": True}, path=PATH, headers=HEADERS)
    assert [name for i, name in enumerate(events(got)) if name not in events(got)[:i]] == [
        "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"]
    assert b"[DONE]" not in got.body


async def test_unknown_fields_and_client_headers_of_the_format_go_along(door):
    headers = {**HEADERS, "anthropic-beta": "x-2025"}
    answer = say.body_of(b'{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi"}],'
                         b'"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1},"odd":7}')
    got = await ask(await door(("anthropic", answer)), {**ASK, "context_management": {"edits": []}}, path=PATH, headers=headers)
    assert got.json["odd"] == 7
    sent = door.ups[0].requests[0]
    assert sent.json() == {**ASK, "context_management": {"edits": []}}
    assert sent.headers["anthropic-beta"] == "x-2025" and sent.headers["anthropic-version"] == "2023-06-01"


async def test_failures_before_the_commit_point_are_never_seen(door):
    overloaded = own(START, b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}')
    got = await ask(await door(("anthropic", overloaded), ("openai-chat", say.stream("Hello"))), {**ASK, "stream": True},
                    path=PATH, headers=HEADERS)
    assert got.status == 200 and got.headers["X-Routed-Via"] == "u1/m" and b"verloaded" not in got.body
    assert events(got).count("message_start") == 1


async def test_failures_after_it_are_told_as_an_error_event(door):
    got = await ask(await door(("anthropic", own(START, BLOCK, DELTA))), {**ASK, "stream": True}, path=PATH, headers=HEADERS)
    assert events(got)[-1] == "error" and "message_stop" not in events(got)


@pytest.mark.parametrize("body, status, kind", [
    ({"model": "m", "messages": ASK["messages"]}, 400, "invalid_request_error"), ({**ASK, "messages": []}, 400, "invalid_request_error"),
    ({**ASK, "model": "no/m"}, 404, "not_found_error")])
async def test_what_is_wrong_with_the_request_is_told_in_its_shape(door, body, status, kind):
    got = await ask(await door(("openai-chat", say.reply("x"))), body, path=PATH, headers=HEADERS)
    assert (got.status, got.json["type"], got.json["error"]["type"]) == (status, "error", kind)
    assert not door.ups[0].requests


async def test_a_wrong_method_key_or_body_is_told_in_its_shape_too(door):
    base_url = await door(("openai-chat", say.reply("x")), config="[server]\nmax_body_bytes = 2000\n")
    assert (await ask(base_url, method="GET", path="/v1/messages", headers=HEADERS)).json["type"] == "error"
    got = await ask(base_url, ASK, path=PATH, headers={"x-api-key": "wrong"})
    assert (got.status, got.json["error"]["type"]) == (401, "authentication_error")
    got = await ask(base_url, {**ASK, "messages": [{"role": "user", "content": "x" * 3000}]}, path=PATH, headers=HEADERS)
    assert (got.status, got.json["error"]["type"]) == (413, "request_too_large")


async def test_names_that_chat_does_not_take_find_their_way_back(door):
    tool = {"name": "x" * 70, "input_schema": {"type": "object"}}
    base_url = await door(("openai-chat", lambda asked: say.tool_stream(asked.json()["tools"][0]["function"]["name"], ["{}"])))
    got = await ask(base_url, {**ASK, "stream": True, "tools": [tool]}, path=PATH, headers=HEADERS)
    assert len(door.ups[0].requests[0].json()["tools"][0]["function"]["name"]) == 64
    assert f'"name":"{"x" * 70}"' in got.body.decode()


async def test_the_first_refusal_is_told_where_all_refuse(door):
    words = "prompt is too long: 250001 tokens > 200000 maximum"
    first = say.body_of(json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": words}}).encode(), 400)
    second = say.body_of(b'{"type":"error","error":{"type":"invalid_request_error","message":"unprocessable"}}', 422)
    got = await ask(await door(("anthropic", first), ("anthropic", second)), ASK, path=PATH, headers=HEADERS)
    assert got.status == 400 and got.json["error"]["message"] == words
