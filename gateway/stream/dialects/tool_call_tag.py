"""``<tool_call>…</tool_call>``: Hermes' and Qwen's JSON, GLM's name with ``<arg_key>`` pairs, Qwen3-Coder's function inside.

https://github.com/NousResearch/Hermes-Function-Calling, https://qwen.readthedocs.io/en/latest/framework/function_call.html,
https://huggingface.co/zai-org/GLM-4.5/blob/main/chat_template.jinja; MiniMax-M1 writes JSON lines into ``<tool_calls>``.
"""
import re
from typing import Final

from gateway.stream.dialects.function_tag import function
from gateway.stream.dialects.invoke import invocation
from gateway.stream.dialects.reader import Reader
from gateway.stream.dialects.values import Fields

_CLOSES: Final = {"<tool_call>": "</tool_call>", "<tool_calls>": "</tool_calls>"}
MARKERS: Final = tuple(_CLOSES)

_NAME = re.compile(r"\s*+([\w.\-]++)\s*+")
_KEY = re.compile(r"<arg_key>([^<]++)</arg_key>\s*+<arg_value>")
_VALUE_END = re.compile(r"</arg_value>\s*+(?=<arg_key>|</tool_call>)")


def block(reader: Reader) -> None:
    close = _CLOSES[reader.marker]
    _call(reader)
    while not reader.takes(close):
        _call(reader)


def _call(reader: Reader) -> None:
    reader.space()
    if reader.sees("{") or reader.sees("["):
        reader.calls_of(reader.container("{["))
    elif reader.takes("<function="):
        function(reader)
    elif reader.takes("<invoke name="):
        invocation(reader)
    else:
        _named(reader)


def _named(reader: Reader) -> None:
    name = reader.match(_NAME)[1]
    if reader.sees("{"):
        reader.call(name, reader.container())
        return
    fields = Fields(reader, name)
    while reader.sees("<arg_key>"):
        fields.read(reader.match(_KEY)[1], _VALUE_END)
    reader.call(name, fields.json())
