"""What does an error body say? Every provider's shape made one: a message, codes, a field at fault.

Shapes seen: ``{"error": {"message", "type", "code", "param"}}`` (OpenAI and kin), ``{"error": {"code", "status", "details"}}``
and the same in an array (Google), ``{"type": "error", "error": {…}}`` (Anthropic), ``{"error": "text"}``, ``{"message", "type"}``
(Mistral, Cohere), ``{"detail": …}`` (FastAPI, RFC 7807), JSON inside a message string, HTML, plain text, nothing.
"""
import html
import re
from http import HTTPStatus
from typing import Any, Final

import msgspec
import orjson

BODY_LIMIT: Final = 256_000
TEXT_LIMIT: Final = 8_192
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.I | re.S)
_HTML = re.compile(r"\s*(?:<!--.*?-->\s*)*<(?:!doctype html|html|head|body)\b", re.I | re.S)
_SALES = re.compile(r"need more tokens\?.*", re.S)
_CODE_NAMES = ("code", "type", "status", "error_type", "errorType", "__type", "reason", "error_code",
               "status_code", "http_status")


class Words(msgspec.Struct, kw_only=True):
    """``codes`` are lower case and come from fields made for machines; ``numbers`` are those that look like a status."""
    message: str
    codes: frozenset[str] = frozenset()
    numbers: tuple[int, ...] = ()
    param: str | None = None
    payload: dict[str, Any] | None = None        # the decoded body, an array unwrapped
    error: dict[str, Any] = {}                   # its innermost error object

    @property
    def lower(self) -> str:
        """For matching; without Groq's sales line, whose "today" is no quota of the day."""
        return _SALES.sub("", self.message.lower())


def read(body: bytes, status: int) -> Words:
    """Never fails: a body that is no JSON is text."""
    raw = body[:BODY_LIMIT]
    try:
        value = orjson.loads(raw) if raw.lstrip()[:1] in (b"{", b"[", b'"') else None
    except orjson.JSONDecodeError:
        value = None
    if value is None:
        return Words(message=plain(raw.decode("utf-8", "replace")) or phrase(status))
    return words(value, status)


def words(value: Any, status: int = 0) -> Words:
    """The words of a decoded body or of an in-band error object."""
    payload = _unwrap(value)
    if isinstance(payload, str):
        return Words(message=plain(payload) or phrase(status))
    if not isinstance(payload, dict):
        return Words(message=phrase(status))
    error = _innermost(payload)
    message = _message(error) or _message(payload) or phrase(status)
    # A message that is JSON itself says more than its wrapper.
    inner = _json(message)
    if inner is not None:
        nested = words(inner, status)
        found = Words(message=nested.message, codes=nested.codes, numbers=nested.numbers, param=nested.param)
    else:
        found = Words(message=message)
    codes, numbers = _codes([error, payload, *_details(error)])
    param = error.get("param", payload.get("param"))
    return Words(message=found.message[:TEXT_LIMIT], codes=codes | found.codes, numbers=numbers + found.numbers,
                 param=param if isinstance(param, str) and param else found.param, payload=payload, error=error)


def plain(text: str) -> str:
    """Text of a body that is no JSON: the title of an HTML page, else the text itself."""
    if _HTML.match(text):
        title = _TITLE.search(text)
        return html.unescape(" ".join(title[1].split())) if title else "an HTML page instead of an answer"
    return text.strip()[:TEXT_LIMIT]


def phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _unwrap(value: Any) -> Any:
    """Google sends errors of streams in an array."""
    for _ in range(3):
        if isinstance(value, list) and value:
            value = value[0]
    return value


def _innermost(payload: dict[str, Any]) -> dict[str, Any]:
    error = payload
    for _ in range(4):
        inner = error.get("error")
        if inner is None:
            inner = error.get("errors")
        inner = _unwrap(inner)
        if not isinstance(inner, dict):
            break
        error = inner
    return error


def _message(error: dict[str, Any]) -> str:
    for name in ("message", "detail", "error", "msg", "error_description", "errorMessage", "Message", "title"):
        text = _text(error.get(name))
        if text:
            return text
    return ""


def _text(value: Any, depth: int = 0) -> str:
    """A message field: a string, a list of validation errors, an object around them."""
    if isinstance(value, str):
        return value.strip()
    if depth > 3:
        return ""
    if isinstance(value, dict):
        if isinstance(value.get("msg"), str):
            place = value.get("loc")
            where = ".".join(str(p) for p in place) + ": " if isinstance(place, (list, tuple)) else ""
            kind = value.get("type")
            return f"{where}{value['msg']}" + (f" ({kind})" if isinstance(kind, str) else "")
        return next((text for name in ("message", "detail", "error") if (text := _text(value.get(name), depth + 1))), "")
    if isinstance(value, list):
        return "; ".join(text for item in value[:5] if (text := _text(item, depth + 1)))
    return ""


def _json(text: str) -> Any:
    if text[:1] not in ("{", "["):
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, (dict, list)) and value else None


def _details(error: dict[str, Any]) -> list[dict[str, Any]]:
    """google.rpc.ErrorInfo and QuotaFailure: https://cloud.google.com/apis/design/errors#error_details"""
    found = [error["innererror"]] if isinstance(error.get("innererror"), dict) else []
    details = error.get("details")
    for detail in details[:20] if isinstance(details, list) else ():
        if isinstance(detail, dict):
            found.append(detail)
            violations = detail.get("violations")
            found += [{"code": v.get("quotaId")} for v in violations[:20] if isinstance(v, dict)] \
                if isinstance(violations, list) else []
    return found


def _codes(sources: list[dict[str, Any]]) -> tuple[frozenset[str], tuple[int, ...]]:
    codes, numbers = set(), []
    for source in sources:
        for name in _CODE_NAMES:
            value = source.get(name)
            if isinstance(value, str) and 0 < len(value) <= 100:
                if value.isdecimal():
                    numbers.append(int(value))
                else:
                    codes.add(value.lower())
            elif isinstance(value, int) and not isinstance(value, bool):
                numbers.append(value)
    return frozenset(codes), tuple(n for n in numbers if 100 <= n <= 599)
