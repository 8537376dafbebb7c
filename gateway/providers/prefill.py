"""Where does an answer go on from the text with which it is begun for it? Facts by provider and model.

``plain``: the last message is the assistant's, and the answer goes on from it. ``prefix``: that message is marked as such besides.
Nothing is guessed: who is not listed is told in words.
"""
import re
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from gateway.providers.registry import Model, Provider

Form = Literal["", "plain", "prefix"]


class Row(msgspec.Struct, frozen=True):
    """``host``: of the address, "" = any; ``path``: what the address ends with."""
    form: Form
    wire: str
    models: re.Pattern[str]
    url: str
    host: str = ""
    path: str = ""


ROWS: Final[tuple[Row, ...]] = (
    # Not from Claude 4.6 on, which answers 400.
    Row("plain", "anthropic", re.compile(r"claude-(?:3|(?:opus-4(?:[-.][015])?|(?:sonnet|haiku)-4(?:[-.]5)?)(?:[-@]\d{8}|$))"),
        "https://platform.claude.com/docs/en/about-claude/models/migration-guide"),
    Row("prefix", "openai-chat", re.compile(r"deepseek-(?:chat|v\d)"), "https://api-docs.deepseek.com/guides/chat_prefix_completion",
        "api.deepseek.com", "/beta"),
    Row("prefix", "openai-chat", re.compile(r"(?:mistral|ministral|codestral|devstral|pixtral|mixtral)"),
        "https://docs.mistral.ai/api/endpoint/chat", "api.mistral.ai"),
)


def prefills(provider: Provider, model: Model) -> Form:
    """How an answer of this model is begun for it; "" = it cannot be."""
    name = model.id.rpartition("/")[2].lower()
    for row in ROWS:
        if row.wire == provider.wire and row.models.search(name):
            parts = urlsplit(provider.base_url)
            if (not row.host or parts.hostname == row.host) and parts.path.endswith(row.path):
                return row.form
    return ""
