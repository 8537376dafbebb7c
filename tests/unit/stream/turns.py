"""Telling a turn its story and reading what left."""
from typing import Any

from gateway.core.events import End, Event, Fault, Finish, Meta, Reasoning, Text, ToolCall, Usage
from gateway.stream.turn import Rules, Turn

TOOLS: dict[str, dict[str, Any] | None] = {
    "get_weather": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'
STOP = Finish("stop")


def turn(**rules: Any) -> Turn:
    return Turn(Rules(**rules), 0.0)


def framed(text: str, choice: int = 0) -> Text:
    """A text event that carries its frame."""
    return Text(text, raw=b'{"t":"' + text.encode() + b'"}', choice=choice)


def play(of: Turn, *events: Event) -> list[Event]:
    """Everything that leaves when the events come one a read and the upstream then closes."""
    out: list[Event] = []
    for event in events:
        out += of.feed([event], 1.0)
    return out + of.eof(2.0)


def text(events: list[Event], choice: int = 0) -> str:
    return "".join([event.text for event in events if isinstance(event, Text) and event.choice == choice])


def thinking(events: list[Event]) -> str:
    return "".join([event.text for event in events if isinstance(event, Reasoning)])


def calls(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.name, event.arguments) for event in events if isinstance(event, ToolCall)]


def reasons(events: list[Event]) -> list[str]:
    return [event.reason for event in events if isinstance(event, Finish)]


def kinds(events: list[Event]) -> list[str]:
    return [type(event).__name__ for event in events]


def kind(of: Turn) -> str | None:
    return of.fault.kind if of.fault is not None else None


META = Meta(id="c1", model="m-up", raw=b'{"role":"assistant"}')
USAGE = Usage(12, 3, total=15, raw=b'{"usage":{}}')
DONE = End(raw=b"[DONE]")

__all__ = ["CALL", "DONE", "Fault", "META", "STOP", "TOOLS", "USAGE", "calls", "framed", "kind", "kinds", "play",
           "reasons", "text", "thinking", "turn"]
