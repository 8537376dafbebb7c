"""What stands around the output? The response object: opened, finished, cut short or failed."""
from typing import Any, Final

from gateway.core import events as ev
from gateway.core.clock import SystemClock
from gateway.core.ids import token
from gateway.wire.base import Shown
from gateway.wire.openai_responses.schema import Asked, Json, write_usage

# What a response repeats of its request, with what stands where the request says nothing.
_ECHOED: Final[Json] = {
    "instructions": None, "max_output_tokens": None, "metadata": {}, "parallel_tool_calls": True, "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None}, "store": True, "temperature": None, "text": {"format": {"type": "text"}},
    "tool_choice": "auto", "tools": [], "top_p": None, "truncation": "disabled", "user": None,
}
_REASONS: Final = {"length": "max_output_tokens", "content_filter": "content_filter", "refusal": "content_filter"}


def response_id(shown: Shown) -> str:
    return shown.kept_as or (shown.id if shown.id.startswith("resp_") else "resp_" + token(32))


def kept_here(response: Json, shown: Shown) -> bool:
    """Name a response that is stored as it will be found here, whatever its upstream calls it. Has that changed it?"""
    if not shown.kept_as:
        return False
    asked = shown.request.body
    mine = {"id": shown.kept_as, "store": True,
            "previous_response_id": (asked.previous_response_id or None) if isinstance(asked, Asked) else None}
    changed = any(response.get(name, "") != value for name, value in mine.items())
    response.update(mine)
    return changed


def skeleton(shown: Shown, id_: str, created: int) -> Json:
    """A response that has just begun."""
    asked = shown.request.body
    doc: Json = asked.doc if isinstance(asked, Asked) else {}
    echoed = {name: default if doc.get(name) is None else doc[name] for name, default in _ECHOED.items()}
    if isinstance(asked, Asked):
        echoed["previous_response_id"] = asked.previous_response_id or None
    return {"id": id_, "object": "response", "created_at": created or shown.created or int(SystemClock.wall()),
            "status": "in_progress", "background": False, "error": None, "incomplete_details": None, "model": shown.model,
            "output": [], "usage": None, **echoed}


def status_of(finish: ev.Finish | None, refused: bool) -> tuple[str, Json | None]:
    """A neutral reason as a status, and the details of an incomplete one. A refusal in words is a completed answer."""
    reason = finish.reason if finish is not None else "stop"
    if reason == "refusal" and refused:
        return "completed", None
    word = _REASONS.get(reason)
    return ("incomplete", {"reason": word}) if word is not None else ("completed", None)


def ended(base: Json, status: str, details: Json | None, output: list[Json], usage: ev.Usage | None, same: bool) -> Json:
    """A response that is over, built from the one that began."""
    return {**base, "status": status, "incomplete_details": details, "output": output,
            "usage": write_usage(usage or ev.Usage(estimated=True), same)}


def counted(usage: Any) -> bool:
    """Does a usage object hold what clients cannot do without? Codex gives up where ``total_tokens`` is missing."""
    return isinstance(usage, dict) and isinstance(usage.get("input_tokens"), int) and isinstance(usage.get("output_tokens"), int) \
        and isinstance(usage.get("total_tokens"), int)
