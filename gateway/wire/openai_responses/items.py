"""What must a list of items look like so that an upstream takes it? And what of a response is kept for the next one?

Each call has one output and each output its call; parts are typed; arguments are text. What the API would take as it came stays
as it came.
"""
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gateway.core.ids import token
from gateway.core.request import Request
from gateway.wire import splice
from gateway.wire.lenient import dump
from gateway.wire.openai_responses.request import IMAGES, TEXTS, of
from gateway.wire.openai_responses.schema import CALLS, ID_PREFIX, NO_RESULT, OUTPUTS, Asked, Json

# The ids of these belong to whoever answered; without them the items say the same.
_PORTABLE: Final = frozenset({"message", *CALLS})


# ---------------------------------------------------------------- a form that every upstream takes
def mended(items: list[Json]) -> list[Json]:
    """The same items, with habits that some upstream refuses put right."""
    out: list[Json] = []
    for item in items:
        kind = item.get("type") or "message"
        if kind == "message":
            made = _message(item)
            if made is not None:
                out.append(made)
        elif kind in CALLS:
            field = "input" if kind == "custom_tool_call" else "arguments"
            said = item.get(field)
            out.append(item if isinstance(said, str) else {**item, field: as_text(said, kind)})
        elif kind in OUTPUTS:
            out.append({**item, "output": _output(item.get("output"))})
        else:
            out.append(item)
    return out


def as_text(said: Any, kind: str) -> str:
    """Arguments that came as an object, or not at all."""
    if said is None:
        return "" if kind == "custom_tool_call" else "{}"
    return dump(said).decode()


def _message(item: Json) -> Json | None:
    content = item.get("content")
    if content is None:
        return None if item.get("role") == "assistant" else {**item, "content": ""}
    if isinstance(content, str):
        return item
    text = "output_text" if item.get("role") == "assistant" else "input_text"
    return {**item, "content": [_part(part, text) for part in content]}


def _part(part: str | Json, text: str) -> Json:
    if isinstance(part, str):
        return {"type": text, "text": part}
    kind = part.get("type")
    if kind in TEXTS and kind not in ("input_text", "output_text"):
        return {**part, "type": text}
    if kind in IMAGES:
        url = part.get("image_url")
        shown = {"detail": "auto", **url, "image_url": url["url"]} if isinstance(url, dict) else {}
        shown.pop("url", None)
        return {**part, **shown, "type": "input_image"} if kind != "computer_screenshot" else part
    return part


def _output(output: Any) -> Any:
    if output is None:
        return ""
    if isinstance(output, dict):
        return dump(output).decode()
    return output if isinstance(output, str) else [_part(part, "input_text") for part in output]


def paired(items: list[Json]) -> list[Json]:
    """A call that nobody answered is told so; an output that nobody asked for becomes a user's text. An id may serve twice."""
    out: list[Json] = []
    waiting: dict[str, list[int]] = {}           # call id -> places of its open calls
    for item in items:
        kind = item.get("type") or "message"
        if kind in CALLS or kind == "local_shell_call" and item.get("call_id"):
            waiting.setdefault(item["call_id"], []).append(len(out))
        elif kind in OUTPUTS:
            open_ = waiting.get(item.get("call_id") or item.get("id") or "")
            if not open_:
                content = item.get("output") or "(an empty tool result)"
                out.append({"type": "message", "role": "user", "content": content})
                continue
            open_.pop(0)
        out.append(item)
    for place in sorted([place for places in waiting.values() for place in places], reverse=True):
        call = out[place]
        kind = "local_shell_call_output" if call["type"] == "local_shell_call" else call["type"] + "_output"
        after = place + 1
        while after < len(out) and out[after].get("type") in CALLS:
            after += 1
        out.insert(after, {"type": kind, "call_id": call["call_id"], "output": NO_RESULT})
    return out


# ---------------------------------------------------------------- stored state
def input_items(request: Request) -> list[Json]:
    """What this request itself adds to the dialogue, as items with ids: to be stored and listed."""
    asked: Asked = request.body
    out: list[Json] = []
    for item in _given(asked.doc):
        kind = item.get("type") or "message"
        made = {**item, "type": kind}
        if kind == "message" and isinstance(item.get("content"), str):
            text = "output_text" if item.get("role") == "assistant" else "input_text"
            made["content"] = [{"type": text, "text": item["content"]}]
        if not made.get("id"):
            made["id"] = f"{ID_PREFIX.get(kind, kind.partition('_')[0])}_{token()}"
        out.append(made)
    return out


def output_items(response: Json) -> list[Json]:
    """What a finished response adds to the dialogue. ``response``: the encoder's ``final``, or a whole answer."""
    output = response.get("output")
    return [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []


def with_history(request: Request, items: list[Json], known: Mapping[str, Json] | None = None) -> Request:
    """The same request with everything said before in its input, for upstreams that keep no state.

    ``items`` are the stored items of the responses before, oldest first; ``known`` resolves ``item_reference``.
    """
    asked: Asked = request.body
    known = known or {}
    own = [portable(known[str(item.get("id"))]) if item.get("type") == "item_reference" and str(item.get("id")) in known else item
           for item in _given(asked.doc)]
    given = [portable(item) for item in items] + own
    doc = {key: value for key, value in asked.doc.items() if key != "previous_response_id"} | {"input": given}
    top: dict[str, bytes | msgspec.Raw] = dict(splice.fields(request.raw))
    top.pop("previous_response_id", None)
    top["input"] = dump(given)
    made = of(doc, splice.join(top))
    made.body.previous_response_id = asked.previous_response_id
    made.body.replayed = bool(items or known)
    made.clean = made.clean and not made.body.replayed
    return made


def without_reasoning(request: Request) -> Request | None:
    """The same request without thinking that only its maker can read; None if it holds none. For upstreams that refuse it
    (``invalid_encrypted_content``)."""
    asked: Asked = request.body
    given = _given(asked.doc)
    kept = [item for item in given if not (item.get("type") == "reasoning" and item.get("encrypted_content"))]
    if len(kept) == len(given) or not kept:
        return None
    top: dict[str, bytes | msgspec.Raw] = dict(splice.fields(request.raw))
    top["input"] = dump(kept)
    made = of({**asked.doc, "input": kept}, splice.join(top))
    made.body.previous_response_id, made.body.replayed = asked.previous_response_id, asked.replayed
    made.body.makers = asked.makers
    made.clean = made.clean and request.clean
    return made


def portable(item: Json) -> Json:
    """An item as any upstream takes it, whoever made it."""
    if (item.get("type") or "message") not in _PORTABLE:
        return item
    return {key: value for key, value in item.items() if key not in ("id", "status")}


def readable(item: Json, makers: Mapping[str, str], provider: str) -> bool:
    """Thinking without its encrypted text nobody can read, and what is encrypted only its maker."""
    if item.get("type") != "reasoning":
        return True
    return bool(item.get("encrypted_content")) and makers.get(str(item.get("id")), provider) == provider


def _given(doc: Json) -> list[Json]:
    given = doc.get("input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return list(given or ())
