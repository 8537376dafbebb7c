"""How is a tool called where an API takes fewer signs or shorter names than the one in which it was declared?

Each declared name gets a spelling of its own; the same function gives the way back, so nothing has to be kept. Rows:
https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use (128) ·
https://platform.openai.com/docs/api-reference/chat/create#chat-create-tools (64) ·
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolSpecification.html (64)
"""
import re
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from gateway.core.request import Call, Conversation, Message, Part, Request, Result

# wire -> how long a name may be; its signs are letters, digits, _ and -
LONGEST: Final = {"anthropic": 128, "openai-chat": 64, "bedrock-converse": 64}
_BAD: Final = re.compile(r"[^a-zA-Z0-9_-]")
_FINE: Final = re.compile(r"[a-zA-Z0-9_-]+")
_ALL_FINE: Final = re.compile(r"[a-zA-Z0-9_\0-]*")              # of names side by side: one look instead of one each


def spelled(names: Iterable[str], longest: int) -> dict[str, str]:
    """Declared name -> its spelling, for those that need one. No two are alike."""
    declared = dict.fromkeys(names)
    if _ALL_FINE.fullmatch("\0".join(declared)) and max(map(len, declared), default=1) <= longest and "" not in declared:
        return {}
    odd = [name for name in declared if len(name) > longest or not _FINE.fullmatch(name)]
    taken = declared.keys() - set(odd)
    found: dict[str, str] = {}
    for name in odd:
        stem = _BAD.sub("_", name)[:longest] or "_"
        made, n = stem, 1
        while made in taken:
            n += 1
            made = f"{stem[:longest - 1 - len(str(n))]}_{n}"
        taken.add(made)
        found[name] = made
    return found


def back(wire: str, request: Request) -> dict[str, str]:
    """Spelling -> declared name, for what an upstream of this wire calls; empty nearly always."""
    longest, talk = LONGEST.get(wire), request.conversation
    if longest is None or talk is None or not request.tools:
        return {}
    return {made: name for name, made in spelled([tool.name for tool in talk.tools], longest).items()}


def respelled(talk: Conversation, wire: str) -> Conversation:
    """The dialogue with names that this wire takes; the very same where all are fine."""
    longest = LONGEST[wire]
    names = spelled([tool.name for tool in talk.tools], longest)
    offered = {tool.name for tool in talk.tools}
    names |= spelled([part.name for message in talk.messages for part in message.parts           # and tools of earlier turns
                      if isinstance(part, (Call, Result)) and part.name and part.name not in offered], longest)
    if not names:
        return talk
    choice = talk.tool_choice
    return replace(
        talk, tools=[replace(tool, name=names.get(tool.name, tool.name)) for tool in talk.tools],
        tool_choice=replace(choice, name=names.get(choice.name, choice.name)) if choice is not None else None,
        messages=[_message(message, names) for message in talk.messages])


def _message(message: Message, names: dict[str, str]) -> Message:
    parts: list[Part] = [replace(part, name=names.get(part.name, part.name)) if isinstance(part, (Call, Result)) else part
                         for part in message.parts]
    return replace(message, parts=parts)
