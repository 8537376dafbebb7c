"""Kimi K2's tokens: sections of calls, each with an id ``functions.NAME:N`` and JSON.

https://huggingface.co/moonshotai/Kimi-K2-Instruct/blob/main/docs/tool_call_guidance.md
"""
import re
from typing import Final

from gateway.stream.dialects.reader import Reader

_SECTION: Final = "<|tool_calls_section_begin|>"
_SECTION_END: Final = "<|tool_calls_section_end|>"
_CALL: Final = "<|tool_call_begin|>"
_ARGUMENTS: Final = "<|tool_call_argument_begin|>"
_END: Final = "<|tool_call_end|>"
MARKERS: Final = (_SECTION, _CALL)
STRAY: Final = (_ARGUMENTS, _END, _SECTION_END)   # outside of a call they say that a block was not understood

# A server that numbers calls its own way leaves opaque ids: they name no declared tool, which ends the reading.
_ID = re.compile(r"\s*+(?:functions\.)?([\w.\-]++)(?::\d++)?\s*+")


def block(reader: Reader) -> None:
    if reader.marker == _SECTION:
        reader.needs(_CALL)
    _call(reader)
    while reader.takes(_CALL):
        _call(reader)
    reader.takes(_SECTION_END)


def _call(reader: Reader) -> None:
    name = reader.match(_ID)[1]
    reader.needs(_ARGUMENTS)
    if reader.takes(_END):
        reader.call(name, "{}")
        return
    reader.call(name, reader.container())
    reader.takes(_END)                            # some servers cut the last token off
