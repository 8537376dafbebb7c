"""What does a Responses client ask? Its body, checked leniently, as the facts of a Request.

What some client sends by habit and we can mend is mended (``Request.clean`` is False then, and ``outgoing.py`` writes the body
anew); what no upstream could make sense of is refused here, with the field's dotted path. Unknown fields and item types are
nobody's business. ``null`` is the same as absent everywhere.
"""
from typing import Any, Final

import msgspec

from gateway.core.errors import bad_request
from gateway.core.request import Format, Request
from gateway.wire.openai_responses.schema import CALLS, OUTPUTS, WIRE, Asked, Json
from gateway.wire.openai_responses.tools import Offer, choice_of
from gateway.wire.problems import decode, invalid
from gateway.wire.splice import fields

_body = msgspec.json.Decoder(dict[str, Any])
ROLES: Final = frozenset({"system", "developer", "user", "assistant"})
MAX_ITEMS: Final = 20_000
RANGES: Final[dict[str, tuple[float, float]]] = {"temperature": (0, 2), "top_p": (0, 1), "top_logprobs": (0, 20)}
TEXTS: Final = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})
IMAGES: Final = frozenset({"input_image", "image_url", "image", "computer_screenshot"})
_TYPES: Final[dict[str, tuple[type, str]]] = {
    "model": (str, "a string"), "instructions": (str, "a string"), "stream": (bool, "true or false"),
    "store": (bool, "true or false"), "background": (bool, "true or false"), "metadata": (dict, "an object"),
    "reasoning": (dict, "an object"), "text": (dict, "an object"), "previous_response_id": (str, "a string"),
    "prompt_cache_key": (str, "a string"), "user": (str, "a string"), "include": (list, "an array"),
}
# With one of these the calls or the input itself may be known elsewhere.
_STATE: Final = ("previous_response_id", "conversation", "prompt")


class Findings:
    """What reading the input has brought to light."""

    __slots__ = ("clean", "chars", "images", "open_calls", "seen_calls", "referred", "offer")

    def __init__(self) -> None:
        self.clean = True
        self.chars = 0
        self.images = 0
        self.seen_calls: set[str] = set()
        self.open_calls: set[str] = set()
        self.referred = False                    # items are named by id only: what they are is not known
        self.offer = Offer()


def parse(raw: bytes) -> Request:
    doc, raw = decode(raw, _body)
    return of(doc, raw)


def of(doc: Json, raw: bytes) -> Request:
    """The facts of a body that is JSON already."""
    _check_options(doc)
    found = Findings()
    _input(doc, found)
    if doc.get("tools") is not None:
        found.offer.read(doc["tools"], "tools")
        found.chars += len(bytes(fields(raw)["tools"]))
    instructions = doc.get("instructions")
    for i, item in enumerate(instructions if isinstance(instructions, list) else ()):
        _item(item, f"instructions.{i}", found)
    found.chars += len(instructions) if isinstance(instructions, str) else 0
    choice = choice_of(doc)
    if choice is not None and doc.get("tool_choice") is not None and (not found.offer.tools or _chat_choice(doc)):
        found.clean = False
    format_ = _format(doc, found)
    limit = doc.get("max_output_tokens")
    offer = found.offer
    asked = Asked(doc=doc, previous_response_id=doc.get("previous_response_id") or "", store=doc.get("store") is not False,
                  origins=offer.origins, tools=offer.tools)
    return Request(
        wire=WIRE, raw=raw, body=asked, model=doc.get("model") or "", stream=doc.get("stream") or False, tools=offer.schemas,
        tool_choice=choice, format=format_, max_tokens=limit, chars=found.chars, images=found.images, include_usage=True,
        session_hint=doc.get("prompt_cache_key") or "", clean=found.clean and offer.clean)


def _check_options(doc: Json) -> None:
    for name, value in doc.items():
        if value is None:
            continue
        if (kind := _TYPES.get(name)) is not None:
            if not isinstance(value, kind[0]) and not (name == "instructions" and isinstance(value, list)):
                raise invalid(name, f"expected {kind[1]}")
        elif (span := RANGES.get(name)) is not None:
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise invalid(name, "expected a number")
            if not span[0] <= value <= span[1]:
                raise invalid(name, f"must be between {span[0]:g} and {span[1]:g}")
    limit = doc.get("max_output_tokens")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise invalid("max_output_tokens", "must be a positive integer")
    if len(doc.get("model") or "") > 512:
        raise invalid("model", "is longer than 512 characters")
    if doc.get("background"):
        raise bad_request("Invalid request: background: responses are not made in the background here; leave it out and wait "
                          "for the answer, or stream it.", "background")


# ---------------------------------------------------------------- input
def _input(doc: Json, found: Findings) -> None:
    given = doc.get("input")
    stated = any(doc.get(name) for name in _STATE)
    if given is None:
        if not stated:
            raise invalid("input", "this field is required")
        return
    if isinstance(given, str):
        found.chars += len(given)
    elif not isinstance(given, list):
        raise invalid("input", "expected a string or an array")
    elif len(given) > MAX_ITEMS:
        raise invalid("input", f"holds more than {MAX_ITEMS} items")
    else:
        for i, item in enumerate(given):
            _item(item, f"input.{i}", found)
        if found.open_calls and not found.referred and not stated:
            found.clean = False
    if not given and not stated:
        raise invalid("input", "must not be empty")


def _item(item: Any, at: str, found: Findings) -> None:
    if not isinstance(item, dict):
        raise invalid(at, "expected an object")
    kind = item.get("type")
    if kind is None or kind == "":
        kind = "message" if "role" in item else None
    if not isinstance(kind, str):
        raise invalid(f"{at}.type", "this field is required")
    if kind == "message":
        role = item.get("role")
        if not isinstance(role, str) or role not in ROLES:
            raise invalid(f"{at}.role", f"must be one of {', '.join(sorted(ROLES))}")
        _content(item.get("content"), f"{at}.content", found, required=role == "user")
    elif kind in CALLS:
        _call(item, kind, at, found)
    elif kind in OUTPUTS:
        _output(item, kind, at, found)
    elif kind == "local_shell_call" and isinstance(item.get("call_id"), str):
        found.seen_calls.add(item["call_id"])
    elif kind == "additional_tools":
        found.offer.read(item.get("tools") or [], f"{at}.tools")
    elif kind == "item_reference":
        found.referred = True


def _call(item: Json, kind: str, at: str, found: Findings) -> None:
    call_id = _string(item, "call_id", at)
    _string(item, "name", at)
    field = "input" if kind == "custom_tool_call" else "arguments"
    said = item.get(field)
    if isinstance(said, str):
        found.chars += len(said)
    else:
        found.clean = False                      # an object or nothing: written as text
    found.seen_calls.add(call_id)
    found.open_calls.add(call_id)


def _output(item: Json, kind: str, at: str, found: Findings) -> None:
    call_id = _string(item, "id" if kind == "local_shell_call_output" and "call_id" not in item else "call_id", at)
    if call_id not in found.seen_calls:
        found.open_calls.add(call_id)            # nobody asked for it
    else:
        found.open_calls.discard(call_id)
    output = item.get("output")
    if isinstance(output, dict) or output is None:
        found.clean = False
        found.chars += len(str(output))
    else:
        _content(output, f"{at}.output", found, required=False)


def _content(content: Any, at: str, found: Findings, required: bool) -> None:
    if isinstance(content, str):
        found.chars += len(content)
        return
    if content is None:
        if required:
            raise invalid(at, "this field is required")
        found.clean = False
        return
    if not isinstance(content, list):
        raise invalid(at, "expected a string or an array")
    for i, part in enumerate(content):
        if isinstance(part, str):
            found.clean = False
            found.chars += len(part)
        elif not isinstance(part, dict):
            raise invalid(f"{at}.{i}", "expected an object")
        else:
            _part(part, f"{at}.{i}", found)


def _part(part: Json, at: str, found: Findings) -> None:
    kind = part.get("type")
    if not isinstance(kind, str):
        raise invalid(f"{at}.type", "this field is required")
    if kind in TEXTS:
        text = part.get("text")
        if not isinstance(text, str):
            raise invalid(f"{at}.text", "expected a string")
        found.chars += len(text)
        found.clean = found.clean and kind != "text"
    elif kind in IMAGES:
        found.images += 1
        url = part.get("image_url")
        if isinstance(url, dict) and isinstance(url.get("url"), str):
            found.clean = False                  # the form of chat completions
        elif not isinstance(url, str) and not isinstance(part.get("file_id"), str):
            raise invalid(f"{at}.image_url", "must be a string: an address or a data: URL")
        found.clean = found.clean and kind in ("input_image", "computer_screenshot")


def _string(item: Json, name: str, at: str) -> str:
    value = item.get(name)
    if not isinstance(value, str) or not value:
        raise invalid(f"{at}.{name}", "this field is required")
    return value


# ---------------------------------------------------------------- the rest
def _chat_choice(doc: Json) -> bool:
    """Is ``tool_choice`` written as chat completions wants it, or as no API does?"""
    choice = doc["tool_choice"]
    return choice == "any" or isinstance(choice, dict) and ("function" in choice or "type" not in choice)


def _format(doc: Json, found: Findings) -> Format | None:
    """``text.format``; ``response_format`` is where chat clients put it."""
    at, wanted = "text.format", (doc.get("text") or {}).get("format")
    if wanted is None and doc.get("response_format") is not None:
        at, wanted = "response_format", doc["response_format"]
        found.clean = False
    if wanted is None:
        return None
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if not isinstance(kind, str):
        raise invalid(f"{at}.type", "must be text, json_object or json_schema")
    if kind == "json_object":
        return Format("json_object")
    if kind != "json_schema":
        return None
    nested = wanted.get("json_schema")
    if isinstance(nested, dict) and "schema" not in wanted:
        wanted, at = nested, f"{at}.json_schema"
        found.clean = False
    schema = wanted.get("schema")
    if not isinstance(schema, dict):
        raise invalid(f"{at}.schema", "expected an object")
    return Format("json_schema", schema, wanted.get("strict") is True, str(wanted.get("name") or ""))
