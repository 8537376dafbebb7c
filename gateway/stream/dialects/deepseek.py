"""DeepSeek's full-width tokens, in the form of V3 and R1 (type, name, fenced JSON) and of V3.1 (name, bare JSON).

https://huggingface.co/deepseek-ai/DeepSeek-V3.1/blob/main/README.md (section ToolCall) and the chat template of DeepSeek-V3-0324.
"""
import re
from typing import Final

from gateway.stream.dialects.reader import Reader

_SECTION: Final = "<｜tool▁calls▁begin｜>"
_SECTION_END: Final = "<｜tool▁calls▁end｜>"
_CALL: Final = "<｜tool▁call▁begin｜>"
_SEPARATOR: Final = "<｜tool▁sep｜>"
_END: Final = "<｜tool▁call▁end｜>"
_SENTENCE_END: Final = "<｜end▁of▁sentence｜>"
MARKERS: Final = (_SECTION, _CALL)
STRAY: Final = (_SEPARATOR, _END, _SECTION_END)

_NAME = re.compile(r"\s*+([\w.\-]++)\s*+")


def block(reader: Reader) -> None:
    if reader.marker == _SECTION:
        reader.needs(_CALL)
    _call(reader)
    while reader.takes(_CALL):
        _call(reader)
    reader.takes(_SECTION_END)
    reader.takes(_SENTENCE_END)


def _call(reader: Reader) -> None:
    name = reader.match(_NAME)[1]
    reader.needs(_SEPARATOR)
    reader.space()
    if name == "function" and not reader.sees("{"):
        name = reader.match(_NAME)[1]
    fenced = reader.takes("```json", "```")
    reader.call(name, reader.container())
    if fenced:
        reader.needs("```")
    reader.needs(_END)
