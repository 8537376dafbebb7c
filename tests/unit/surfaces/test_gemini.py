"""The Gemini doors: paths, framings, credentials, errors, counts."""
import json

import pytest

from gateway.mock import script as say
from gateway.surfaces.gemini import split
from tests.conftest import KEY, client_key, provider
from tests.talk import AUTH, ask
from tests.unit.wire import gemini_turns as gem

ASK = {"contents": [{"parts": [{"text": "hi"}]}]}


@pytest.fixture
def door(gateway, upstream):
    """A gateway with one upstream; ``door.up`` is it."""
    async def start(answer, wire: str = "openai-chat"):
        start.up = await upstream(answer)
        return await gateway(client_key() + provider(start.up, models='["m", {id = "org/deep/x"}]', wire=f'"{wire}"'))
    return start


@pytest.mark.parametrize(("tail", "found"), [
    ("m:generateContent", ("m", "generateContent")), ("org%2Fdeep/x:y:countTokens", ("org/deep/x:y", "countTokens")),
    ("models/m:generateContent", ("m", "generateContent")), (":generateContent", ("auto", "generateContent")), ("m", ("auto", "m"))])
def test_a_path_is_a_model_and_a_method(tail, found):
    assert split(tail) == found


@pytest.mark.parametrize("prefix", ["/v1beta/models/", "/v1/models/"])
async def test_a_whole_answer_of_a_chat_upstream(door, prefix):
    base_url = await door(say.reply("hello"))
    got = await ask(base_url, ASK, path=prefix + "org%2Fdeep/x:generateContent")
    assert got.status == 200 and got.headers["X-Routed-Via"] == "up/org/deep/x"
    assert got.json["candidates"][0]["content"]["parts"] == [{"text": "hello"}]
    assert got.json["usageMetadata"] == {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12}
    assert json.loads(door.up.requests[0].body)["messages"] == [{"role": "user", "content": "hi"}]


async def test_a_stream_of_events_and_a_stream_as_one_array_say_the_same(door):
    base_url = await door(say.stream("Hel", "lo"))
    events = await ask(base_url, ASK, path="/v1beta/models/m:streamGenerateContent?alt=sse")
    array = await ask(base_url, ASK, path="/v1beta/models/m:streamGenerateContent")
    assert events.headers["Content-Type"].startswith("text/event-stream") and array.headers["Content-Type"].startswith("application/json")
    for frames in (events.frames, array.json):
        assert "".join(p["text"] for f in frames for p in f["candidates"][0]["content"]["parts"]) == "Hello"
        assert frames[-1]["candidates"][0]["finishReason"] == "STOP" and frames[-1]["usageMetadata"]["totalTokenCount"] == 12
    assert not events.done and b"\n:" not in events.body and b"event:" not in events.body


async def test_the_same_format_passes_through_byte_for_byte(door):
    frames = [gem.dump({**gem.say("Hel"), "modelVersion": "m", "newField": 1.50}), gem.dump(gem.say("", finish="STOP", usage=gem.USAGE))]
    base_url = await door(say.script(say.Head(200, say.SSE), say.Send(gem.sse(*frames))), wire="gemini")
    raw = b'{"contents":[{"parts":[{"text":"hi"}]}],"novel_field":{"x":1}}'
    got = await ask(base_url, raw=raw, path="/v1beta/models/m:streamGenerateContent?alt=sse")
    assert got.body.startswith(b"data: " + frames[0] + b"\n\n") and got.frames[-1]["usageMetadata"] == gem.USAGE
    sent = door.up.requests[0]
    assert sent.body == raw and sent.path == "/v1/models/m:streamGenerateContent?alt=sse" and sent.headers["x-goog-api-key"] == "sk-up-1"


async def test_a_cut_stream_is_told_inside_it(door):
    base_url = await door(say.script(say.Head(200, say.SSE), say.Send(gem.sse(gem.say("Hel")))), wire="gemini")
    got = await ask(base_url, ASK, path="/v1beta/models/m:streamGenerateContent?alt=sse")
    assert got.status == 200 and got.frames[-1]["error"]["code"] == 502
    array = await ask(base_url, ASK, path="/v1beta/models/m:streamGenerateContent")
    assert array.json[-1]["error"]["status"] == "UNAVAILABLE" if array.status == 200 else array.json["error"]


@pytest.mark.parametrize(("path", "headers", "status"), [
    ("/v1beta/models/m:generateContent", {"x-goog-api-key": KEY}, 200), (f"/v1beta/models/m:generateContent?key={KEY}", {}, 200),
    (f"/v1/models/m:generateContent?key={KEY}", {}, 401), ("/v1beta/models/m:generateContent", {}, 401)])
async def test_credentials(door, path, headers, status):
    got = await ask(await door(say.reply()), ASK, path=path, headers=headers)
    assert got.status == status
    if status == 401:
        assert got.json["error"]["status"] == "UNAUTHENTICATED"


@pytest.mark.parametrize(("path", "body", "status", "name"), [
    ("/v1beta/models/nobody:generateContent", ASK, 404, "NOT_FOUND"), ("/v1beta/models/m:doMagic", ASK, 404, "NOT_FOUND"),
    ("/v1beta/models/m:generateContent", {"contents": []}, 400, "INVALID_ARGUMENT")])
async def test_errors_have_googles_shape(door, path, body, status, name):
    got = await ask(await door(say.reply()), body, path=path, headers=AUTH)
    assert (got.status, got.json["error"]["code"], got.json["error"]["status"]) == (status, status, name)


async def test_tokens_are_counted_here(door):
    base_url = await door(say.reply())
    got = await ask(base_url, {"generateContentRequest": {"model": "models/m", "contents": [{"parts": [{"text": "word " * 40}]}]}},
                    path="/v1beta/models/m:countTokens")
    assert got.status == 200 and got.json["totalTokens"] > 20 and not door.up.requests
    assert (await ask(base_url, ASK, path="/v1beta/models/nobody:countTokens")).status == 404
