"""How does a request get back what its client dropped? On a copy: the next target may be another model, which must not see it.

What the client kept itself wins. A body of the target's own format is patched where the messages stand; everything else is said
by the neutral conversation.
"""
from typing import Any

import msgspec

from gateway.core import request as rq
from gateway.core.request import Request
from gateway.memory.needs import Needs, bare
from gateway.memory.traces import Session, Trace
from gateway.wire import splice
from gateway.wire.base import Outbound
from gateway.wire.gemini.encoder import signature_of
from gateway.wire.lenient import dump, load
from gateway.wire.openai_chat.schema import Body

_replace = msgspec.structs.replace


def reminded(request: Request, known: Session, needs: Needs, to: Outbound, wire: str) -> Request:
    """The request with what this target, which speaks ``wire``, said before; the same object where nothing is missing."""
    if wire != request.wire:
        talk = request.conversation
        return request if talk is None else _reminded_talk(request, talk, known, needs, to)
    return _reminded_body(request, known, needs, to) if isinstance(request.body, Body) else request


def turns_before(request: Request) -> int:
    """How many turns of the model the dialogue has."""
    messages: Any = request.body.messages or () if isinstance(request.body, Body) else \
        request.conversation.messages if request.conversation is not None else ()
    return sum(1 for message in messages if message.role == "assistant")


def thought(known: Session, needs: Needs, calls: list[str], turn: int, model: str) -> str:
    """The reasoning of one turn, "" if this model has none there."""
    found: Trace | None = next((trace for id_ in calls if (trace := known.thoughts.get(id_)) is not None), None)
    if found is None and not calls and needs.always:
        found = known.turns.get(turn)
    return found.text if found is not None and found.maker == bare(model) else ""


def signature(known: Session, call_id: str, to: Outbound) -> str:
    found = known.signatures.get(call_id)
    return found.text if found is not None and found.maker == to.provider else ""


# ---------------------------------------------------------------- the conversation
def _reminded_talk(request: Request, talk: rq.Conversation, known: Session, needs: Needs, to: Outbound) -> Request:
    messages, turn = [], 0
    for message in talk.messages:
        if message.role == "assistant":
            message, turn = _reminded_message(message, known, needs, to, turn), turn + 1
        messages.append(message)
    if all(made is given for made, given in zip(messages, talk.messages, strict=True)):
        return request
    return _replace(request, conversation=_replace(talk, messages=messages))


def _reminded_message(message: rq.Message, known: Session, needs: Needs, to: Outbound, turn: int) -> rq.Message:
    parts = message.parts
    if needs.signatures:
        parts = [_signed(part, known, to) if isinstance(part, rq.Call) else part for part in parts]
    if needs.reasoning and not any(isinstance(part, rq.Thinking) and part.text for part in parts):
        calls = [part.id for part in parts if isinstance(part, rq.Call)]
        if text := thought(known, needs, calls, turn, to.model):
            parts = [rq.Thinking(text), *parts]
    if len(parts) == len(message.parts) and all(made is given for made, given in zip(parts, message.parts, strict=True)):
        return message
    return _replace(message, parts=parts)


def _signed(call: rq.Call, known: Session, to: Outbound) -> rq.Call:
    if call.signature or not (found := signature(known, call.id, to)):
        return call
    return _replace(call, signature=found)


# ---------------------------------------------------------------- a chat body
def _reminded_body(request: Request, known: Session, needs: Needs, to: Outbound) -> Request:
    top: dict[str, bytes | msgspec.Raw] = dict(splice.fields(request.raw))
    messages, _ = load(bytes(top["messages"]))
    turn, changed = 0, False
    for message in messages:
        if message.get("role") != "assistant":
            continue
        calls = [call for call in message.get("tool_calls") or () if isinstance(call, dict)]
        if needs.signatures:
            changed = sum([_sign(call, known, to) for call in calls]) > 0 or changed
        if needs.reasoning and not any(message.get(name) for name in ("reasoning_content", "reasoning")):
            if text := thought(known, needs, [str(call.get("id") or "") for call in calls], turn, to.model):
                message["reasoning_content"], changed = text, True
        turn += 1
    if not changed:
        return request
    top["messages"] = dump(messages)
    return _replace(request, raw=splice.join(top))


def _sign(call: dict[str, Any], known: Session, to: Outbound) -> bool:
    """https://ai.google.dev/gemini-api/docs/openai: where Google's own chat endpoint keeps it."""
    if signature_of(call) or not (found := signature(known, str(call.get("id") or ""), to)):
        return False
    extra = call.get("extra_content")
    extra = extra if isinstance(extra, dict) else {}
    google = extra.get("google")
    call["extra_content"] = {**extra, "google": {**(google if isinstance(google, dict) else {}), "thought_signature": found}}
    return True
