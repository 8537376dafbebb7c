"""The Responses format as it is written, for a reviewer's eye: a dialogue both ways, a rich turn, and a turn that passed through.

GOLDEN=write rewrites the files; read the difference before committing it.
"""
import json
import os
from pathlib import Path

import pytest

from gateway.core import events as ev
from gateway.core.reply import fold
from gateway.core.request import (
    Call,
    Conversation,
    Document,
    Format,
    Image,
    Message,
    Result,
    Sampling,
    Text,
    Thinking,
    Thought,
    Tool,
    ToolChoice,
)
from tests.unit.wire.responses_turns import (
    CHAT,
    RESPONSES,
    asked,
    call_frames,
    message,
    passed,
    reasoning_frames,
    shown,
    stream,
    text_frames,
    to,
)

FILES = Path(__file__).parent / "openai_responses"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = [{"type": "function", "name": "trains", "parameters": {"type": "object"}},
         {"type": "custom", "name": "note", "description": "Writes a note.",
          "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}},
         {"type": "namespace", "name": "fairs", "tools": [{"type": "function", "name": "find", "parameters": CITY}]},
         {"type": "web_search"}]


def dialogue() -> bytes:
    """A dialogue of another format, for a Responses upstream."""
    request = asked()
    request.wire = "other"
    request.conversation = Conversation(
        [Message("system", [Text("You plan trips.")]), Message("developer", [Text("Prefer trains.")]),
         Message("user", [Text("Where is this, and what is on there?"), Image("aGk=", "image/jpeg", detail="low"),
                          Document(text="Summer fair, 3 July.", title="Leaflet")]),
         Message("assistant", [Thinking("Looks like Graz.", "c2ln", owner="anthropic"), Text("Two look-ups."),
                               Call("call_" + "w" * 70, "weather", '{"city": "Graz"}'), Call("call_2", "note", "fair?", "custom")]),
         Message("tool", [Result("call_2", [Text("A fair.")])]),
         Message("tool", [Result("call_" + "w" * 70, [Text("see map"), Image(url="https://maps.example/graz.png")], is_error=True)]),
         Message("user", [Text("And trains?")]), Message("assistant", [Call("call_3", "trains", "")])],
        tools=[Tool("weather", "Weather by city", CITY), Tool("trains", strict=True), Tool("note", "Writes a note", kind="custom"),
               Tool("bash", kind="server", payload={"type": "bash_20250124"})],
        tool_choice=ToolChoice("auto", parallel=False), thought=Thought("medium"), user="traveller-7",
        format=Format("json_schema", CITY, True, "trip"), sampling=Sampling(max_tokens=2000, temperature=0.4, stop=["END"]))
    return _pretty(json.loads(RESPONSES.build_request(request, to(model="gpt-5", max_output=1500, stream=True))))


def items_for_chat() -> bytes:
    """A Responses client's items, for a chat upstream."""
    request = asked(instructions="You plan trips.", tools=TOOLS, tool_choice="auto", reasoning={"effort": "low"}, stream=True, input=[
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Prefer trains."}]},
        {"role": "user", "content": [{"type": "input_text", "text": "What is on?"}, {"type": "input_image", "image_url": "https://x.example/y.png"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Look."}], "encrypted_content": "gAAA"},
        message("Two look-ups."), {"type": "function_call", "call_id": "c1", "name": "find", "namespace": "fairs", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "note", "input": "fair?"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "noted"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "A fair."}]},
        {"role": "user", "content": "And trains?"}])
    RESPONSES.open(request)
    return _pretty(json.loads(CHAT.build_request(request, to(stream=True))))


TURN = [ev.Meta("chatcmpl-77"), ev.Reasoning("The map "), ev.Reasoning("says Graz."), ev.Text("It is "), ev.Text("Graz – “sunny”."),
        ev.Refusal("That I will not book."), ev.ToolCall(0, "call_1", "trains", '{"to":"Wien"}'),
        ev.ToolCall(1, "call_2", "note", '{"input":"Pack a hat"}'), ev.ToolCall(2, "call_3", "fairs__find", "{}"),
        ev.Finish("tool_calls"), ev.Usage(input=1200, output=64, cached=1000, reasoning=20, total=1264), ev.End()]


def turn_streamed() -> bytes:
    return RESPONSES.encoder(shown(same=False, request=asked(tools=TOOLS))).encode(TURN)


def turn_whole() -> bytes:
    return _pretty(json.loads(RESPONSES.build_reply(fold(TURN), shown(same=False, request=asked(tools=TOOLS)), None)))


def passed_through() -> bytes:
    """Thinking, a call in the middle (held by the turn), a search that the provider ran, noted text."""
    search = {"id": "ws_1", "type": "web_search_call", "status": "in_progress"}
    frames = text_frames(["A ", "fair."], 3)
    note = {"type": "response.output_text.annotation.added", "item_id": "msg_1", "output_index": 3, "content_index": 0,
            "annotation_index": 0, "annotation": {"type": "url_citation", "url": "https://fair.example"}}
    return passed(stream(*reasoning_frames(["Look."]), *call_frames(1, namespace="n"),
                         {"type": "response.output_item.added", "output_index": 2, "item": search},
                         {"type": "response.web_search_call.searching", "output_index": 2, "item_id": "ws_1"},
                         {"type": "response.output_item.done", "output_index": 2, "item": {**search, "status": "completed"}},
                         *frames[:4], note, *frames[4:]), tools={"f": None})


def _pretty(value) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"


@pytest.mark.parametrize(("name", "made"), [
    ("dialogue.json", dialogue), ("items_for_chat.json", items_for_chat), ("turn.sse", turn_streamed), ("turn.json", turn_whole),
    ("passed.sse", passed_through)])
def test_it_is_written_as_reviewed(name, made):
    path = FILES / name
    if os.environ.get("GOLDEN") == "write":
        path.write_bytes(made())
    assert made().decode() == path.read_text(encoding="utf-8")
