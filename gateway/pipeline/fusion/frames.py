"""What are clients told that know of panels? ``_fusion``, beside what every client of chat understands.

In a stream it stands in chunks whose one choice has an empty delta, so that others read over them; in a whole answer beside the
choices. Other formats have no place for it.
"""
from typing import TYPE_CHECKING, Any, Final

from gateway.core.call import Attempt, Call
from gateway.core.redact import clip
from gateway.wire.lenient import dump

if TYPE_CHECKING:
    from gateway.pipeline.fusion.panel import Panel
    from gateway.pipeline.fusion.seat import Seat

CONTENT_CHARS: Final = 65_536                        # of one member's answer
Json = dict[str, Any]


def stream_id(call: Call) -> str:
    """One id for all chunks of the answer: that of an answer whose upstream gave none."""
    return f"chatcmpl-{call.id}"


def written(call: Call, model: str, said: Json) -> bytes:
    chunk: Json = {"id": stream_id(call), "object": "chat.completion.chunk", "created": int(call.wall), "model": model or "fusion",
                   "choices": [{"index": 0, "delta": {}, "finish_reason": None}], "_fusion": said}
    return b"data: " + dump(chunk) + b"\n\n"


def panel(seat: "Seat") -> Json:
    """One member has come to its end."""
    target, draft = seat.member.targets[0], seat.draft
    told: Json = {"event": "panel", "platform": target.provider.id, "model": target.model.id,
                  "status": "ok" if draft is not None else "failed"}
    if draft is not None:
        told["content"] = draft.text[:CONTENT_CHARS]
        if draft.calls:
            told["tool_calls"] = [{"name": call.name, "arguments": call.arguments} for call in draft.calls]
    elif seat.error is not None:
        told["error"] = clip(seat.error.message, 240)
    return told


def last_word(kind: str, attempt: Attempt) -> Json:
    """Who has it: the judge, the best of the panel, or the call that most of it made."""
    return {"event": kind, "platform": attempt.provider, "model": attempt.model}


def beside(found: "Panel", attempt: Attempt) -> Json:
    """What a whole answer says of its making."""
    who: Json = {"platform": attempt.provider, "model": attempt.model}
    answered = [{"platform": draft.x.attempt.provider, "model": draft.x.attempt.model} for draft in found.drafts]
    told: Json = {"panel": answered, "judge": who if found.kind == "judge" else None, "synthesized": found.kind == "judge"}
    if found.kind == "tool_call":
        told["tool_call_winner"] = who
    fields: Json = {"_fusion": told}
    if found.brief.expose:
        brief = found.brief
        members = [{key: value for key, value in panel(seat).items() if key != "event"} for seat in found.seats]
        fields["x_fusion"] = {"strategy": "best_of" if brief.best_of else "synthesize", "synthesized": found.kind == "judge",
                              "judge": told["judge"], "panel_requested": brief.k, "dropped": list(brief.dropped), "panel": members}
    return fields
