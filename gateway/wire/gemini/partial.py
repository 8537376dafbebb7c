"""Which arguments do the pieces of a call make? Vertex streams them as values, each with the JSONPath of its place.

https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling#streaming-fc
"""
import re
from typing import Any, Final

from gateway.wire.gemini.schema import Json

_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")
_VALUES: Final = ("stringValue", "numberValue", "boolValue")
MAX_INDEX: Final = 10_000                        # an index far beyond the end is no array but an attack


class Partial:
    """One call that is still coming. A text that comes again at its place goes on there."""

    __slots__ = ("_first", "_args")

    def __init__(self, part: Json) -> None:
        self._first = part
        given = part["functionCall"].get("args")
        self._args: Json = dict(given) if isinstance(given, dict) else {}

    def add(self, call: Json) -> None:
        pieces = call.get("partialArgs")
        for piece in pieces if isinstance(pieces, list) else ():
            if isinstance(piece, dict):
                self._put(_steps(str(piece.get("jsonPath") or "")), piece)
        if isinstance(rest := call.get("args"), dict):
            self._args.update(rest)

    def part(self) -> Json:
        """The part as if the call had come whole."""
        call = {key: value for key, value in self._first["functionCall"].items() if key not in ("willContinue", "partialArgs")}
        return {**self._first, "functionCall": {**call, "args": self._args}}

    def _put(self, steps: list[str | int], piece: Json) -> None:
        if not steps:
            return
        place: Any = self._args
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            was = _get(place, step)
            if following is None:
                value = next((piece[name] for name in _VALUES if name in piece), None)
                _set(place, step, was + value if isinstance(was, str) and isinstance(value, str) else value)
                return
            if not isinstance(was, (dict, list)):
                was = [] if isinstance(following, int) else {}
                _set(place, step, was)
            place = was


def _steps(path: str) -> list[str | int]:
    return [int(number) if number else name or single or double for name, number, single, double in _STEP.findall(path)]


def _get(place: Any, step: str | int) -> Any:
    if isinstance(place, list):
        return place[step] if isinstance(step, int) and step < len(place) else None
    return place.get(str(step))


def _set(place: Any, step: str | int, value: Any) -> None:
    if isinstance(place, dict):
        place[str(step)] = value
    elif isinstance(step, int) and step < MAX_INDEX:
        place.extend([None] * (step + 1 - len(place)))
        place[step] = value
