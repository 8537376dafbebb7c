"""What must a model know that takes a conversation over from another one? A short note, in one request and nowhere else.

A session's last model is remembered for each name that was asked for. Where the next answer comes from another one, its request
says whom it follows, that the task goes on, and what was said last. The note is not kept and not shown to anybody.
"""
from math import inf
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gateway.core import request as rq
from gateway.core.request import Request
from gateway.pipeline.aside import LARGE_BYTES, aside
from gateway.pipeline.asking import text, turns
from gateway.pipeline.ground import Ground
from gateway.pipeline.prepare import Plan
from gateway.routing.ask import Ask
from gateway.routing.families import plain
from gateway.tokens.estimate import estimate, reserve
from gateway.wire import amend

if TYPE_CHECKING:
    from gateway.pipeline.attempt import Exchange

TTL_S: Final = 10_800.0
MAX_TURNS: Final = 12
MAX_CHARS: Final = 500                           # of each
MAX_NOTE: Final = 6_000
_OPENS, _CLOSES = "<context_handoff>", "</context_handoff>"
_MODELS: Final = frozenset({"assistant", "model"})
_SPEAKERS: Final = {"user": "User", "assistant": "Assistant", "model": "Assistant"}


def noticed(plan: Plan, asked: Ask, ground: Ground) -> Plan:
    """The plan with the session's last model, where there is something to hand over. A new beginning forgets it."""
    if not (asked.relay and asked.session):
        return plan
    memory, scope = ground.health.memory, plan.resolution.scope
    last = memory.last_model(scope, asked.session, ground.clock.now(), TTL_S)
    if last is None:
        return plan
    if not any(role in _MODELS for role, _ in turns(plan.request)):
        memory.served.pop((scope, asked.session), None)
        return plan
    return msgspec.structs.replace(plan, previous=last.label.partition("/")[2])


async def relayed(x: "Exchange", request: Request) -> Request:
    """The request for this target: with a note where its model is another one than the session's last, and where that fits."""
    previous, current = x.plan.previous, x.attempt.model
    if plain(previous) == plain(current) or _OPENS.encode() in request.raw:
        return request
    note = fitting(x, previous, current)
    if not note:
        return request
    x.call.retold = True
    if request.wire != x.lane.wire.name:
        return with_note(request, note)
    large = len(request.raw) > LARGE_BYTES
    return await aside(amend.instructed, request, x.client.wire, note, False) if large \
        else amend.instructed(request, x.client.wire, note, replace=False)


def fitting(x: "Exchange", previous: str, current: str) -> str:
    """The whole note, or the part of it without what was said, or nothing: whatever this model has room for."""
    context = x.lane.candidate.target.model.context or inf
    room = context - x.plan.input_tokens - reserve(x.plan.request.max_tokens)
    whole = written(previous, current, turns(x.plan.request))
    return next((note for note in (whole, written(previous, current, [])) if estimate(note) <= room), "")


def written(previous: str, current: str, said: list[tuple[str, Any]]) -> str:
    """At most MAX_NOTE characters. The user's newest message is in the request itself."""
    head = (f"{_OPENS}\nThe answers above came from the model {previous}; {current} takes over now. Continue the same task from where "
            "it stands: do not start again, do not introduce yourself, do not ask what has been answered already. The newest message "
            "of the user goes before everything in this note.")
    newest = max((n for n, (role, _) in enumerate(said) if role == "user"), default=len(said))
    lines, left = list[str](), MAX_NOTE - len(head) - len(_CLOSES) - 40
    for role, content in reversed(said[:newest]):
        words = " ".join(text(content).split()) if role in _SPEAKERS else ""
        if not words:
            continue
        line = f"{_SPEAKERS[role]}: {words if len(words) <= MAX_CHARS else words[:MAX_CHARS - 1] + '…'}"
        if len(lines) == MAX_TURNS or len(line) + 1 > left:
            break
        left -= len(line) + 1
        lines.append(line)
    summary = "\nWhat was said last:\n" + "\n".join(reversed(lines)) if lines else ""
    return f"{head}{summary}\n{_CLOSES}"


def with_note(request: Request, note: str) -> Request:
    """The same with the note behind the instructions, on a copy of the neutral dialogue."""
    talk = request.conversation
    if talk is None:
        return request
    messages = list(talk.messages)
    n = next((n for n, message in enumerate(messages) if message.role not in ("system", "developer")), len(messages))
    if n:
        messages[n - 1] = msgspec.structs.replace(messages[n - 1], parts=joined(messages[n - 1].parts, note))
    else:
        messages.insert(0, rq.Message("system", [rq.Text(note)]))
    return msgspec.structs.replace(request, conversation=msgspec.structs.replace(talk, messages=messages))


def joined(parts: list[rq.Part], note: str) -> list[rq.Part]:
    """With a text behind them, in the last one where that is a text: many servers take a message of one text only."""
    last = parts[-1] if parts else None
    if isinstance(last, rq.Text) and last.cache_control is None:
        return [*parts[:-1], msgspec.structs.replace(last, text=f"{last.text}\n\n{note}")]
    return [*parts, rq.Text(note)]
