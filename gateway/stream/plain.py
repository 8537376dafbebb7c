"""Is this a whole turn that nobody has to judge? Most are: a text, a reason, counts and the end, in one read.

The turn's own way (choices, commit point, verdict) lets such events leave as they came, every one of them, in their order. Here
that is seen at a glance: 20 µs of a short stream's or a whole answer's 200.
"""
from typing import TYPE_CHECKING, Final

from gateway.core import events as ev
from gateway.core.events import Event, Text
from gateway.stream.choices import plain_run
from gateway.stream.think import OPEN

if TYPE_CHECKING:
    from gateway.stream.turn import Turn

_ENDING: Final = (ev.Finish, ev.Usage, ev.End)


def at_once(turn: "Turn", events: list[Event], now: float) -> bool:
    """Are these the whole of a fresh turn without tools or format, and do they need nothing? Then it has ended with them."""
    if len(events) < 5 or type(events[0]) is not ev.Meta or tuple(map(type, events[-3:])) != _ENDING:
        return False
    first: Event = events[1]
    if type(first) is not Text or not first.text or first.text[0] == OPEN[0] or first.text[0].isspace():
        return False
    stop, n_chars = plain_run(events, 1, False)
    opening, finish, usage = events[0], events[-3], events[-2]
    if stop != len(events) - 3 or finish.choice or finish.reason in ("", "tool_calls"):         # type: ignore[attr-defined]
        return False
    if not (usage.input or usage.output or usage.total):                                        # type: ignore[attr-defined]
        return False
    turn.upstream_id, turn.upstream_model = opening.id, opening.model
    turn.first_token_at, turn.text_chars = now, n_chars
    turn.finish, turn.usage = finish.reason, usage                                              # type: ignore[attr-defined,assignment]
    turn.committed = turn.done = turn.spoke = True
    return True
