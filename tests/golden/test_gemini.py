"""Gemini's format as it is written, for a reviewer's eye: one rich dialogue, one rich turn in three framings, one that passed through.

GOLDEN=write rewrites the files; read the difference before committing it.
"""
import json
import os
from pathlib import Path

import pytest

from gateway.core import events as ev
from gateway.core import request as rq
from gateway.core.reply import fold
from gateway.wire.gemini import GEMINI
from tests.unit.wire.gemini_turns import call_frame, decode, frame, from_chat, say, shown, sse, to, turn

FILES = Path(__file__).parent / "gemini"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SCHEMA = {"$schema": "x", "type": "object", "additionalProperties": False, "required": ["city", "unit"], "properties": {
    "city": {"$ref": "#/$defs/City"}, "unit": {"const": "C"}, "days": {"type": ["integer", "null"], "exclusiveMinimum": 0},
    "when": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]}},
    "$defs": {"City": {"type": "object", "properties": {"name": {"type": "string"}, "near": {"$ref": "#/$defs/City"}}}}}


def talk() -> rq.Conversation:
    return rq.Conversation(
        [rq.Message("system", [rq.Text("You plan trips.")]), rq.Message("developer", [rq.Text("Prefer trains.")]),
         rq.Message("user", [rq.Text("Where is this, and what is on there?"), rq.Image(PIXEL, "image/jpg"),
                             rq.Document(text="Summer fair, 3 July.", title="Leaflet"), rq.Document("audio/wav", "UklGRg==")]),
         rq.Message("assistant", [rq.Thinking("Looks like Graz.", "c2ln", owner="gemini"), rq.Thinking("someone else's"),
                                  rq.Text("Two look-ups."), rq.Call("call_1", "weather", '{"city": {"name": "Graz"}}', signature="c2lnMg=="),
                                  rq.Call("call_2", "events by place", '{"days": 3}')]),
         rq.Message("tool", [rq.Result("call_2", [rq.Text("A fair.")], is_error=False)]),
         rq.Message("tool", [rq.Result("call_1", [rq.Text('{"sky": "sunny"}'), rq.Image(PIXEL, "image/png")])]),
         rq.Message("user", [rq.Text("And trains?"), rq.Text("")]), rq.Message("assistant", [rq.Call("call_3", "trains", "")])],
        tools=[rq.Tool("weather", "Weather by city", SCHEMA), rq.Tool("events by place"), rq.Tool("trains", strict=True),
               rq.Tool("note", "Writes a note", kind="custom"), rq.Tool("web_search", kind="server", payload={"type": "web_search"})],
        tool_choice=rq.ToolChoice("named", "weather", parallel=False), thought=rq.Thought("medium"), user="traveller-7",
        format=rq.Format("json_schema", SCHEMA, True, "plan"),
        sampling=rq.Sampling(max_tokens=20_000, temperature=0.4, top_p=0.9, stop=["END"]))


def dialogue(model: str) -> bytes:
    request = from_chat()
    request.conversation = talk()
    return _pretty(json.loads(GEMINI.build_request(request, to(model=model, max_output=64_000))))


TURN = [ev.Meta("chatcmpl-77"), ev.Reasoning("The map "), ev.Reasoning("says Graz."), ev.Text("It is "), ev.Text("Graz \u2013 “sunny”."),
        ev.Refusal("That I will not book."), ev.ToolCall(0, "call_3", "trains", '{"to":"Wien"}', extra={"thought_signature": "c2ln"}),
        ev.ToolCall(1, "call_4", "note", "Pack a hat", kind="custom"), ev.Finish("tool_calls"),
        ev.Usage(input=1200, output=64, cached=1000, cache_write=100, reasoning=20, total=1264), ev.End()]


def streamed(operation: str) -> bytes:
    return GEMINI.encoder(shown(same=False, operation=operation)).encode(TURN) + b"\n"


def whole() -> bytes:
    return _pretty(json.loads(GEMINI.build_reply(fold(TURN), shown(same=False), None)))


def passed_through() -> bytes:
    """Thinking, a search, code, a call in the middle (held by the turn), cited text with the reason: frames keep what they say."""
    usage = {"promptTokenCount": 90, "candidatesTokenCount": 7, "totalTokenCount": 97, "trafficType": "ON_DEMAND"}
    data = sse(frame({"text": "Look.", "thought": True}, usage={"promptTokenCount": 90, "totalTokenCount": 90}, vendor={"zone": "eu"}),
               frame({"toolCall": {"toolType": "GOOGLE_SEARCH"}, "thoughtSignature": "c2ln"}),
               frame({"executableCode": {"code": "1+1", "language": "PYTHON"}}, {"codeExecutionResult": {"output": "2"}}),
               say("One moment."), call_frame("weather", {"city": "Graz"}, id="call_1", signature="c2lnMg=="),
               say("A fair.", finish="STOP", usage=usage, groundingMetadata={"webSearchQueries": ["fair"]}))
    return GEMINI.encoder(shown()).encode(turn(decode(data), tools={"weather": None}))


def _pretty(value) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"


@pytest.mark.parametrize("name, made", [
    ("dialogue.2.5.json", lambda: dialogue("gemini-2.5-flash")), ("dialogue.3.json", lambda: dialogue("gemini-3-flash-preview")),
    ("turn.sse", lambda: streamed("chat")), ("turn.array.json", lambda: streamed("chat-array")), ("turn.json", whole),
    ("passed.sse", passed_through)])
def test_it_is_written_as_reviewed(name, made):
    path = FILES / name
    if os.environ.get("GOLDEN") == "write":
        path.write_bytes(made())
    assert made() == path.read_bytes()
