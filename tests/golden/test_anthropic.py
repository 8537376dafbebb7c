"""The Messages format as it is written, for a reviewer's eye: one rich dialogue, one rich turn, and a turn that passed through.

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
from gateway.wire.anthropic import ANTHROPIC
from tests.unit.wire.anthropic_turns import (
    decode,
    delta,
    ending,
    frame,
    judged,
    opening,
    sent,
    shown,
    start,
    stop,
    text_block,
    tool_block,
)

FILES = Path(__file__).parent / "anthropic"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def dialogue() -> bytes:
    talk = Conversation(
        [Message("system", [Text("You plan trips.", {"type": "ephemeral"})]), Message("developer", [Text("Prefer trains.")]),
         Message("user", [Text("Where is this, and what is on there?"), Image(PIXEL, "image/jpg"),
                          Document(text="Summer fair, 3 July.", title="Leaflet")]),
         Message("assistant", [Thinking("Looks like Graz.", "c2ln", owner="anthropic"), Thinking("someone else's"),
                               Text("Two look-ups."), Call("functions.weather:0", "weather", '{"city": "Graz"}'),
                               Call("call_2", "events", '{"city": "Graz", "days": 3}')]),
         Message("tool", [Result("call_2", [Text("A fair.")])]),
         Message("tool", [Result("functions.weather:0", [Text("see map"), Image(url="https://maps.example/graz.png")])]),
         Message("user", [Text("And trains?"), Text("")]), Message("assistant", [Call("call_3", "trains", "")])],
        tools=[Tool("weather", "Weather by city", {"type": "object", "properties": {"city": {"type": "string"}}}),
               Tool("events"), Tool("trains", strict=True), Tool("note", "Writes a note", kind="custom"),
               Tool("web_search", kind="server", payload={"type": "web_search"})],
        tool_choice=ToolChoice("auto", parallel=False), thought=Thought("medium"), user="traveller-7",
        sampling=Sampling(max_tokens=2000, temperature=0.4, top_p=0.9, stop=["END"]))
    return _pretty(sent(talk, model="claude-sonnet-4-5", max_output=64_000, stream=True))


TURN = [ev.Meta("chatcmpl-77"), ev.Reasoning("The map "), ev.Reasoning("says Graz."), ev.Text("It is "), ev.Text("Graz \u2013 “sunny”."),
        ev.Refusal("That I will not book."), ev.ToolCall(0, "functions.trains:0", "trains", '{"to":"Wien"}'),
        ev.ToolCall(1, "call_4", "note", "Pack a hat", kind="custom"), ev.Finish("tool_calls"),
        ev.Usage(input=1200, output=64, cached=1000, cache_write=100, reasoning=20, total=1264), ev.End()]


def turn_streamed() -> bytes:
    return ANTHROPIC.encoder(shown(False)).encode(TURN)


def turn_whole() -> bytes:
    return _pretty(json.loads(ANTHROPIC.build_reply(fold(TURN), shown(False), None)))


def passed_through() -> bytes:
    """Thinking, a call in the middle (held by the turn), a server-run search, cited text: frames keep what they say."""
    cite = {"type": "web_search_result_location", "url": "https://fair.example", "cited_text": "fair"}
    data = opening(vendor={"zone": "eu"}) + frame("ping") \
        + start(0, type="thinking", thinking="", signature="") + delta(0, "thinking_delta", thinking="Look.") \
        + delta(0, "signature_delta", signature="c2ln") + stop(0) \
        + text_block(1, "One moment.") + tool_block(2, "weather", '{"city":', '"Graz"}', caller={"type": "direct"}) \
        + start(3, type="server_tool_use", id="srv_1", name="web_search", input={}) \
        + delta(3, "input_json_delta", partial_json='{"query":"fair"}') + stop(3) \
        + start(4, type="web_search_tool_result", tool_use_id="srv_1", content=[{"url": "https://fair.example"}]) + stop(4) \
        + start(5, type="text", text="", citations=[]) + delta(5, "citations_delta", citation=cite) \
        + delta(5, "text_delta", text="A fair.") + stop(5) + ending("end_turn", input_tokens=90)
    return ANTHROPIC.encoder(shown()).encode(judged(decode(data), tools={"weather": None}))


def _pretty(value) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"


@pytest.mark.parametrize("name, made", [("dialogue.json", dialogue), ("turn.sse", turn_streamed), ("turn.json", turn_whole),
                                        ("passed.sse", passed_through)])
def test_it_is_written_as_reviewed(name, made):
    path = FILES / name
    if os.environ.get("GOLDEN") == "write":
        path.write_bytes(made())
    assert made().decode() == path.read_text(encoding="utf-8")
