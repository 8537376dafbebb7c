"""``<function=NAME{json}</function>`` (Llama, Groq) and ``<function=NAME><parameter=KEY>value</parameter></function>`` (Qwen3-Coder).

https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/ (user-defined custom tools),
https://huggingface.co/Qwen/Qwen3-Coder-30B-A3B-Instruct/blob/main/chat_template.jinja
"""
import re
from typing import Final

from gateway.stream.dialects.reader import Reader
from gateway.stream.dialects.values import Fields

_CLOSE: Final = "</function>"
MARKERS: Final = ("<function=",)

_NAME = re.compile(r"""\s*+["']?([\w.\-]++)["']?""")
_BEFORE_JSON = re.compile(r"[\s=:,>(]*+")         # seen: name{…}, name>{…}, name={…}, name,{…}, name({…})
_AFTER_JSON = re.compile(r"[\s)>]*+")
_KEY = re.compile(r"<parameter=([^>\n]++)>")
_VALUE_END = re.compile(r"</parameter>\s*+(?=<parameter=|</function>)")


def block(reader: Reader) -> None:
    function(reader)
    reader.takes("</tool_call>")                  # Qwen3-Coder forgets the opening of the pair, not its end


def function(reader: Reader) -> None:
    """One function, from its name on."""
    name = reader.match(_NAME)[1]
    reader.match(_BEFORE_JSON)
    if reader.sees("<"):
        fields = Fields(reader, name)
        while reader.sees("<parameter="):
            fields.read(reader.match(_KEY)[1], _VALUE_END)
        reader.call(name, fields.json())
    else:
        reader.call(name, reader.container())
        reader.match(_AFTER_JSON)
    reader.needs(_CLOSE)
