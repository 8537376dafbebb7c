"""How are JSON values streamed without events? As the elements of one array, which is only JSON when it is closed, or one a line.

The array is what Gemini's ``streamGenerateContent`` sends without ``alt=sse``; a value a line is Ollama's form.
https://github.com/ndjson/ndjson-spec
"""
from typing import Final

ARRAY_TYPE: Final = "application/json; charset=utf-8"
LINES_TYPE: Final = "application/x-ndjson"

OPEN: Final = b"["
NEXT: Final = b",\r\n"
CLOSE: Final = b"]"


def element(data: bytes, first: bool) -> bytes:
    """The next value of an array, with what parts it from the one before."""
    return (OPEN if first else NEXT) + data


def line(data: bytes) -> bytes:
    """A value on a line of its own. ``data`` holds no line ends (JSON that we write has none)."""
    return data + b"\n"
