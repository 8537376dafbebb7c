"""Llama 3's ``<|python_tag|>`` with a call as JSON; several are divided by semicolons.

https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/ . Code for the built-in interpreter also follows this token:
it is no JSON, so it is no call.
"""
from typing import Final

from gateway.stream.dialects.reader import Reader

MARKERS: Final = ("<|python_tag|>",)


def block(reader: Reader) -> None:
    reader.calls_of(reader.container("{["))
    while reader.takes(";"):
        reader.calls_of(reader.container())
    reader.takes("<|eom_id|>", "<|eot_id|>")
