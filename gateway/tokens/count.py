"""About how many tokens must a model read for this dialogue? Everything counts: instructions, tools, calls, results, pictures.

Slower and closer than ``estimate_request``: every text is looked at. For whoever asks for the number itself.
"""
from typing import Any, Final

import msgspec

from gateway.core.request import (
    Call,
    Conversation,
    Document,
    Image,
    Opaque,
    Part,
    Refusal,
    Result,
    Text,
    Thinking,
    Tool,
)
from gateway.tokens.estimate import IMAGE_TOKENS, estimate
from gateway.tokens.exact import counter

MESSAGE_TOKENS: Final = 4                # what frames a message: a role and its marks
TOOL_TOKENS: Final = 8                   # … and a declaration
PAGE_TOKENS: Final = 2_000               # of a PDF: text and picture. https://docs.anthropic.com/en/docs/build-with-claude/pdf-support
PAGE_CHARS: Final = 100_000              # base64 of an ordinary page


def count(talk: Conversation, model: str = "", factor: float = 1.0) -> int:
    """Tokens of the input; at least 1. Texts are counted exactly where the model's vocabulary is at hand; else ``factor``, what
    was learned of it, corrects the estimate."""
    texts: list[str] = []
    total = 0
    for message in talk.messages:
        total += MESSAGE_TOKENS + sum([_part(part, texts) for part in message.parts])
    for tool in talk.tools:
        texts.append(_declared(tool))
        total += TOOL_TOKENS
    if talk.format is not None and talk.format.schema is not None:
        texts.append(_json(talk.format.schema))
    exact = counter(model)
    said = exact(texts) if exact is not None else round(sum(map(estimate, texts)) * factor)
    return max(total + said, 1)


def _part(part: Part, texts: list[str]) -> int:
    """Puts what there is to read on ``texts``; the tokens of what is no text."""
    match part:
        case Text() | Refusal():
            texts.append(part.text)
        case Thinking():
            texts.append(part.text)
        case Call():
            texts += (part.name, part.arguments)
        case Result():
            return sum([_part(inner, texts) for inner in part.parts])
        case Image():
            return IMAGE_TOKENS
        case Document():
            texts += (part.title, part.text)
            return 0 if part.text else PAGE_TOKENS * (1 + len(part.data) // PAGE_CHARS)
        case Opaque():
            texts.append(_json(part.payload))
    return 0


def _declared(tool: Tool) -> str:
    if tool.kind != "function":
        return _json(tool.payload or {"name": tool.name})
    return f"{tool.name}\n{tool.description}\n{_json(tool.parameters or {})}"


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeError, ValueError, TypeError):
        return str(value)                # half a surrogate pair, a number that is none
