"""How is a whole Gemini answer read and written? A body of the same format is kept in everything that did not have to change."""
from typing import Any

from gateway.core import events as ev
from gateway.core import reply as rp
from gateway.core.errors import GatewayError
from gateway.core.ids import token
from gateway.wire.base import Shown
from gateway.wire.gemini.encoder import call_part, reason_for
from gateway.wire.gemini.frames import Reader
from gateway.wire.gemini.schema import NAME, Json, finish_out, write_usage
from gateway.wire.lenient import dump, load

_KNOWN = frozenset({"candidates", "promptFeedback", "usageMetadata", "error"})


# ---------------------------------------------------------------- reading
def parse(raw: bytes, same: bool) -> list[ev.Event]:
    """The events of a whole answer, or of a stream that came as one array. Raises bad_reply for what is neither."""
    try:
        body, _ = load(raw)
    except ValueError:
        kind = "an HTML page" if raw.lstrip()[:1] == b"<" else "a body that is not JSON"
        raise GatewayError("bad_reply", f"The provider answered with {kind}.") from None
    frames = body if isinstance(body, list) else [body]
    if not frames or not all(isinstance(frame, dict) and frame.keys() & _KNOWN for frame in frames):
        raise GatewayError("bad_reply", "The provider's answer has no candidates.")
    read = Reader(same, "")
    out: list[ev.Event] = []
    for frame in frames:
        out += read.frame(frame, None)
        if out and type(out[-1]) is ev.Fault:
            return out
    # A body is complete by its framing: a candidate that says no reason simply ended.
    seen = {event.choice for event in out if isinstance(event, (ev.Text, ev.Reasoning, ev.ToolDelta, ev.Opaque))} or {0}
    for choice in sorted(seen - read.finished):
        called = any(type(event) is ev.ToolDelta and event.choice == choice for event in out)
        out.append(ev.Finish("tool_calls" if called else "stop", choice))
    return [*out, *read.counted(), ev.End()]


# ---------------------------------------------------------------- writing
def build(reply: rp.Reply, shown: Shown, raw: bytes | None) -> bytes:
    """The client's whole answer."""
    if raw is not None and shown.same:
        doc, _ = load(raw)
        if isinstance(doc, dict) and (doc.get("candidates") or doc.get("promptFeedback")):
            _mend(doc, reply, shown)
            return dump(doc)
    return dump(_built(reply, shown))


def _mend(doc: Json, reply: rp.Reply, shown: Shown) -> None:
    """The upstream's document with what the turn changed, and what was missing."""
    if doc.get("modelVersion") != shown.model:
        doc["modelVersion"] = shown.model
    if not doc.get("usageMetadata") and reply.usage is not None:
        doc["usageMetadata"] = write_usage(reply.usage, True)
    candidates = doc.get("candidates")
    candidates = [one for one in candidates if isinstance(one, dict)] if isinstance(candidates, list) else []
    for position, candidate in enumerate(candidates):
        index = candidate.get("index")
        choice = reply.choices.get(index if isinstance(index, int) else position)
        if choice is None:
            continue
        given = candidate.get("content")
        content: Json = given if isinstance(given, dict) else {"role": "model"}
        candidate["content"] = content
        parts = _parts_mended(parts if isinstance(parts := content.get("parts"), list) else [], choice, shown)
        if parts or "parts" in content:
            content["parts"] = parts
        candidate["finishReason"] = reason_for(candidate.get("finishReason"), choice.finish.reason if choice.finish else "stop")


def _parts_mended(parts: list[Any], choice: rp.Choice, shown: Shown) -> list[Any]:
    """The parts with the turn's calls in the places of the upstream's; anew where the turn has cut text another way."""
    said = "".join([str(part.get("text") or "") for part in parts if isinstance(part, dict) and not part.get("thought")])
    if shown.touched and said != choice.text:
        return _parts(choice)
    calls = iter(choice.calls)
    out: list[Any] = []
    for part in parts:
        if not (isinstance(part, dict) and isinstance(part.get("functionCall"), dict)):
            out.append(part)
        elif (call := next(calls, None)) is not None:
            made = call_part(call)
            out.append({**part, **made, "functionCall": {**part["functionCall"], **made["functionCall"]}})
    return out + [call_part(call) for call in calls]


def _built(reply: rp.Reply, shown: Shown) -> Json:
    candidates: list[Json] = []
    for index, choice in sorted(reply.choices.items()) or [(0, rp.Choice())]:
        reason = choice.finish.reason if choice.finish is not None else "stop"
        candidates.append({"content": {"parts": _parts(choice), "role": "model"}, "finishReason": finish_out(reason),
                           "index": index})
    out: Json = {"candidates": candidates}
    if reply.usage is not None:
        out["usageMetadata"] = write_usage(reply.usage, shown.same)
    return {**out, "modelVersion": shown.model,
            "responseId": (reply.meta.id if shown.same else "") or shown.id or token()}


def _parts(choice: rp.Choice) -> list[Json]:
    """A turn's events as parts, in their order; pieces of one text together."""
    out: list[Json] = []
    for event in choice.order:
        if isinstance(event, ev.ToolCall):
            out.append(call_part(event))
        elif isinstance(event, ev.Opaque):
            if event.wire == NAME and event.raw is not None:
                out += _opaque(event)
        elif event.text:
            thought = {"thought": True} if isinstance(event, ev.Reasoning) else {}
            if out and out[-1].keys() == {"text", *thought}:
                out[-1]["text"] += event.text
            else:
                out.append({"text": event.text, **thought})
    return out or [{"text": ""}]


def _opaque(event: ev.Opaque) -> list[Json]:
    """A part that only this format has; what stood beside the parts has no place among them."""
    return [event.payload] if isinstance(event.payload, dict) and event.kind in event.payload else []


def build_count(n: int) -> bytes:
    """The answer of countTokens."""
    return dump({"totalTokens": n})
