"""A whole answer: the events of a turn, folded. Non-stream is the event list folded at the end: one path for both."""
from collections.abc import Iterable
from typing import Any

import msgspec

from gateway.core import events as ev


class Choice(msgspec.Struct):
    """One alternative answer. ``opaque`` keeps what has no neutral form, in order."""
    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: list[ev.ToolCall] = []
    thinking: list[ev.Reasoning] = []
    opaque: list[ev.Opaque] = []
    finish: ev.Finish | None = None
    order: list[Any] = []


class Reply(msgspec.Struct):
    """The folded turn. ``order`` of a choice lists its payload events as they came, for wires with ordered blocks."""
    meta: ev.Meta
    choices: dict[int, Choice]
    usage: ev.Usage | None = None


def fold(events: Iterable[ev.Event]) -> Reply:
    """Join the events of a finished turn (what ``Turn`` let leave) into one reply."""
    reply = Reply(ev.Meta(), {})
    texts: dict[int, list[str]] = {}
    for event in events:
        if isinstance(event, ev.Meta):
            if not reply.meta.id:
                reply.meta = event
            continue
        if isinstance(event, ev.Usage):
            reply.usage = event
            continue
        if isinstance(event, (ev.Fault, ev.End)):
            continue
        index: int = event.choice  # type: ignore[attr-defined]
        choice = reply.choices.get(index)
        if choice is None:
            choice = reply.choices[index] = Choice()
        if isinstance(event, ev.Text):
            texts.setdefault(index, []).append(event.text)
            choice.order.append(event)
        elif isinstance(event, ev.Finish):
            choice.finish = event
        else:
            _add(choice, event)
    for index, pieces in texts.items():
        reply.choices[index].text = "".join(pieces)
    return reply


def _add(choice: Choice, event: ev.Event) -> None:
    choice.order.append(event)
    if isinstance(event, ev.Reasoning):
        choice.reasoning += event.text
        choice.thinking.append(event)
    elif isinstance(event, ev.Refusal):
        choice.refusal += event.text
    elif isinstance(event, ev.ToolCall):
        choice.calls.append(event)
    elif isinstance(event, ev.Opaque):
        choice.opaque.append(event)
