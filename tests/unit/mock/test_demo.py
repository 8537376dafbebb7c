"""The demo provider answers like a real one: words, calls, usage, in a stream or whole."""
from typing import Any

import msgspec
import pytest

from gateway.core.errors import GatewayError
from gateway.mock.demo import ANSWER, DemoTransport
from gateway.mock.sample import sample
from gateway.upstream.transport import Outgoing, Timeouts

TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {
    "type": "object", "required": ["city", "days", "unit"], "properties": {
        "city": {"type": "string"}, "days": {"type": "integer", "minimum": 2}, "unit": {"enum": ["C", "F"]},
        "unused": {"type": "string"}}}}}
OTHER = {"type": "function", "function": {"name": "send_mail", "parameters": {"type": "object", "properties": {}}}}


async def ask(text: Any = "Hi", *, path: str = "/chat/completions", transport: DemoTransport | None = None, **more: Any) -> Any:
    demo = transport or DemoTransport(pace_s=0)
    messages = text if isinstance(text, list) else [{"role": "user", "content": text}]
    body = msgspec.json.encode({"model": "demo", "messages": messages, **more})
    reply = await demo.send(Outgoing(method="POST", url="demo:/v1" + path, headers={}, body=body, timeouts=Timeouts()))
    if not more.get("stream"):
        return reply.status, msgspec.json.decode(await reply.read(1 << 20))
    assert reply.headers["content-type"] == "text/event-stream"
    frames = []
    while data := await reply.chunk():
        frames.append(data)
    assert frames[-1] == b"data: [DONE]\n\n" and demo.open_connections() == 0
    return [msgspec.json.decode(frame[6:]) for frame in frames[:-1]]


def calls_of(body: dict[str, Any]) -> list[tuple[str, Any]]:
    found = body["choices"][0]["message"].get("tool_calls", [])
    return [(call["function"]["name"], msgspec.json.decode(call["function"]["arguments"])) for call in found]


async def test_it_answers_whole_and_counts() -> None:
    status, body = await ask()
    assert status == 200
    assert body["choices"][0] == {"index": 0, "message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}
    assert body["usage"]["total_tokens"] == body["usage"]["prompt_tokens"] + body["usage"]["completion_tokens"] > 0


async def test_it_streams_word_by_word_and_usage_comes_when_asked() -> None:
    frames = await ask(stream=True, stream_options={"include_usage": True})
    words = [frame["choices"][0]["delta"].get("content", "") for frame in frames[:-1]]
    assert "".join(words) == ANSWER and len(words) > 40
    assert frames[-2]["choices"][0]["finish_reason"] == "stop" and frames[-1]["choices"] == [] and frames[-1]["usage"]
    assert len({frame["id"] for frame in frames}) == 1
    assert "usage" not in (await ask(stream=True))[-1]


@pytest.mark.parametrize(("text", "choice", "called"), [
    ("Hi", None, None), ("Hi", "auto", None), ("Hi", "none", None), ("Use the tool", "none", None),
    ("Hi", "required", "get_weather"), ("Please use your tools now", None, "get_weather"), ("call get_weather", "auto", "get_weather"),
    ("please send_mail to Ann", None, "send_mail"), ("Hi", {"type": "function", "function": {"name": "send_mail"}}, "send_mail")])
async def test_it_calls_a_tool_when_one_is_asked_for(text: str, choice: Any, called: str | None) -> None:
    _, body = await ask(text, tools=[TOOL, OTHER], tool_choice=choice)
    assert [name for name, _ in calls_of(body)] == ([called] if called else [])
    assert body["choices"][0]["finish_reason"] == ("tool_calls" if called else "stop")


async def test_arguments_fit_the_schema_in_both_ways_of_answering() -> None:
    fitting = {"city": "Oslo", "days": 2, "unit": "C"}
    _, body = await ask("Oslo", tools=[TOOL], tool_choice="required")
    assert calls_of(body) == [("get_weather", fitting)]
    frames = await ask("Oslo", tools=[TOOL], tool_choice="required", stream=True)
    deltas = [call for frame in frames for call in frame["choices"][0]["delta"].get("tool_calls", [])]
    assert deltas[0]["function"]["name"] == "get_weather" and deltas[0]["id"]
    assert msgspec.json.decode("".join(delta["function"]["arguments"] for delta in deltas)) == fitting
    assert frames[-1]["choices"][0]["finish_reason"] == "tool_calls"


async def test_it_answers_with_what_the_tool_returned() -> None:
    _, body = await ask([{"role": "user", "content": "use a tool"}, {"role": "tool", "tool_call_id": "1", "content": "14 degrees"}],
                        tools=[TOOL])
    assert "14 degrees" in body["choices"][0]["message"]["content"]


async def test_it_writes_documents_and_keeps_to_limits() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": TOOL["function"]["parameters"]}}
    _, body = await ask(response_format=form)
    assert msgspec.json.decode(body["choices"][0]["message"]["content"]) == {"city": "demo", "days": 2, "unit": "C"}
    _, body = await ask(response_format={"type": "json_object"})
    assert "answer" in msgspec.json.decode(body["choices"][0]["message"]["content"])
    _, body = await ask(max_tokens=3)
    assert body["choices"][0] == {"index": 0, "message": {"role": "assistant", "content": "Hello! This is"}, "finish_reason": "length"}


async def test_what_it_does_not_understand_is_an_http_error() -> None:
    assert (await ask(path="/embeddings"))[0] == 404
    assert (await ask(messages="nonsense"))[0] == 400
    assert (await ask(path="/models"))[1]["data"][0]["id"] == "demo"


async def test_a_reply_that_is_closed_is_over() -> None:
    demo = DemoTransport(pace_s=0)
    out = Outgoing(method="POST", url="x/chat/completions", headers={}, body=b'{"stream":true}', timeouts=Timeouts())
    first, second = await demo.send(out), await demo.send(out)
    assert await first.chunk() and demo.open_connections() == 2
    first.close()
    assert await first.chunk() == b"" and demo.open_connections() == 1
    with pytest.raises(GatewayError):
        await second.read(10)
    await demo.close()
    assert demo.open_connections() == 0


@pytest.mark.parametrize(("schema", "expected"), [
    ({}, {}), (True, {}), ({"type": ["null", "string"]}, "t"), ({"type": "array", "items": {"type": "boolean"}, "minItems": 2}, [True, True]),
    ({"const": 5}, 5), ({"anyOf": [{"type": "null"}, {"type": "string"}]}, None), ({"type": "number", "exclusiveMinimum": 4}, 5),
    ({"type": "integer", "minimum": 7, "multipleOf": 5}, 10), ({"type": "integer", "maximum": -3}, -3),
    ({"type": "string", "minLength": 3}, "txx"), ({"type": "string", "format": "date"}, "2026-01-01"),
    ({"$defs": {"a": {"type": "string"}}, "type": "object", "properties": {"x": {"$ref": "#/$defs/a"}}}, {"x": "t"}),
    ({"allOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"b": {"const": 2}}}]}, {"a": 1, "b": 2})])
def test_the_smallest_document_of_a_schema(schema: Any, expected: Any) -> None:
    assert sample(schema, "t") == expected


def test_a_schema_that_contains_itself_comes_to_an_end() -> None:
    tree = {"type": "object", "properties": {"child": {"$ref": "#"}}, "required": ["child"]}
    assert sample(tree, "t")["child"]["child"]
