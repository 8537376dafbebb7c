"""How is a body that we cannot read told to its sender? msgspec's findings as our error, with the field's dotted path."""
import json
import re
from typing import Any, Final, TypeVar

import msgspec

from gateway.core.errors import GatewayError, bad_request
from gateway.wire.lenient import whole_text

T = TypeVar("T")

_AT: Final = re.compile(r" - at `\$\.?(.*)`$")
_EXPECTED: Final = re.compile(r"^Expected `(.+?)`, got `(.+?)`")
_MISSING: Final = re.compile(r"^Object missing required field `(.+?)`")
_WORDS: Final = {"str": "a string", "int": "an integer", "float": "a number", "bool": "true or false", "object": "an object",
                 "array": "an array", "null": "null"}


def decode(raw: bytes, decoder: "msgspec.json.Decoder[T]") -> tuple[T, bytes]:
    """The typed body, and the bytes to work with from now on (mended where the sender's JSON was only almost JSON)."""
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    if not raw.strip():
        raise bad_request("The request body is empty; send a JSON object.")
    try:
        return decoder.decode(raw), raw
    except msgspec.ValidationError as problem:
        raise told(problem) from None
    except RecursionError:
        raise bad_request("The request body is nested too deeply.") from None
    except msgspec.DecodeError as problem:
        mended = _without_halves(raw)
        if mended is None:
            raise _no_json(raw, problem) from None
    try:
        return decoder.decode(mended), mended
    except msgspec.ValidationError as problem:
        raise told(problem) from None


def told(problem: msgspec.ValidationError, prefix: str = "") -> GatewayError:
    """One finding: ``messages.1.content: expected a string …``."""
    text = str(problem)
    place = _AT.search(text)
    path = _dotted(place.group(1) if place else "", prefix)
    text = _AT.sub("", text)
    if missing := _MISSING.match(text):
        path = f"{path}.{missing.group(1)}" if path else missing.group(1)
        return bad_request(f"Invalid request: {path}: this field is required.", path)
    if expected := _EXPECTED.match(text):
        wanted = [_WORDS.get(word, word) for word in expected.group(1).split(" | ") if word != "null"]
        got = _WORDS.get(expected.group(2), expected.group(2))
        text = f"expected {' or '.join(wanted)}, got {got}"
    if not path:
        return bad_request(f"The request body must be a JSON object: {text}.")
    return bad_request(f"Invalid request: {path}: {text}.", path)


def invalid(path: str, what: str) -> GatewayError:
    return bad_request(f"Invalid request: {path}: {what}.", path)


def _dotted(path: str, prefix: str) -> str:
    path = path.replace("[...]", ".*").replace("[", ".").replace("]", "").strip(".")
    return f"{prefix}.{path}".strip(".") if prefix else path


def _no_json(raw: bytes, problem: Exception) -> GatewayError:
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return bad_request(f"The request body is not valid UTF-8 (byte {error.start}).")
    return bad_request(f"The request body is not valid JSON: {str(problem)[:120]}.")


def _without_halves(raw: bytes) -> bytes | None:
    """A string cut in the middle of an emoji (JavaScript's ``slice``) leaves half a surrogate pair, which is no text for most
    parsers: it becomes U+FFFD. None where something else is wrong."""
    if b"\\ud" not in raw and b"\\uD" not in raw:
        return None

    def refuse(word: str) -> Any:
        raise ValueError(word)

    try:
        value = json.loads(raw, parse_constant=refuse)
    except (ValueError, RecursionError):
        return None
    return whole_text(json.dumps(value, ensure_ascii=False, separators=(",", ":"))).encode()
