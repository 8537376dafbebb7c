"""``<invoke name="NAME"><parameter name="KEY">value</parameter></invoke>``: MiniMax, DeepSeek V3.2's DSML, Anthropic's old tags.

Bare or in a wrapper. https://huggingface.co/MiniMaxAI/MiniMax-M2/blob/main/docs/tool_calling_guide.md,
https://docs.vllm.ai/en/stable/api/vllm/parser/deepseek_v32/
"""
import re
from typing import Final

from gateway.stream.dialects.reader import Reader
from gateway.stream.dialects.values import Fields

_PREFIXES: Final = ("", "antml:", "｜DSML｜")
_WRAPPERS: Final = {
    "<minimax:tool_call>": "</minimax:tool_call>",
    **{f"<{prefix}function_calls>": f"</{prefix}function_calls>" for prefix in _PREFIXES},
}
_OPENINGS: Final = tuple(f"<{prefix}invoke name=" for prefix in _PREFIXES)
_CLOSES: Final = tuple(f"</{prefix}invoke>" for prefix in _PREFIXES)
MARKERS: Final = (*_WRAPPERS, *_OPENINGS)

_ANY: Final = f"(?:{'|'.join(_PREFIXES[1:])})?"
_NAME = re.compile(r"""\s*+["']?([\w.\-]++)["']?\s*+>""")
_KEY = re.compile(rf"""<{_ANY}parameter\s++name=["']?([^"'>\n]++)["']?(?:\s++string=["'](true|false)["'])?\s*+>""")
_VALUE_END = re.compile(rf"</{_ANY}parameter>\s*+(?=<{_ANY}parameter\s|</{_ANY}invoke>)")


def block(reader: Reader) -> None:
    wrapper = _WRAPPERS.get(reader.marker)
    if wrapper is None:
        invocation(reader)
        return
    reader.needs(*_OPENINGS)
    invocation(reader)
    while not reader.takes(wrapper):
        reader.needs(*_OPENINGS)
        invocation(reader)


def invocation(reader: Reader) -> None:
    """One invocation, from its name on."""
    name = reader.match(_NAME)[1]
    fields = Fields(reader, name)
    reader.space()
    while not reader.takes(*_CLOSES):
        key = reader.match(_KEY)
        fields.read(key[1], _VALUE_END, literal=key[2])
    reader.call(name, fields.json())
