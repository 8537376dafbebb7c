"""Mistral's control tokens: an array of calls (tokenizers v2 to v7), or name and JSON (v11 and later, with or without [ARGS]).

https://docs.mistral.ai/guides/tokenization/ and mistral-common's instruct tokenizers.
"""
import re
from typing import Final

from gateway.stream.dialects.reader import Reader

_MARKER: Final = "[TOOL_CALLS]"
MARKERS: Final = (_MARKER,)

_NAME = re.compile(r"\s*+([\w.\-]++)\s*+(?:\[CALL_ID\]\w*+\s*+)?(?:\[ARGS\])?")


def block(reader: Reader) -> None:
    reader.space()
    if reader.sees("[") or reader.sees("{"):
        reader.calls_of(reader.container("[{"))
    else:
        name = reader.match(_NAME)[1]
        reader.call(name, reader.container())
    reader.takes("[/TOOL_CALLS]")
    reader.takes("</s>")
