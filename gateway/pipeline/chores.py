"""Is this a chore that a client does in the background, a title or a summary of a few words? Then a cheap model does it.

Opt-in ([routing] background_models). Only what is short, wants words and nothing else, and says so itself: never a request that
offers tools, shows pictures or holds a long history. Whoever was asked for stays behind the cheap model, should that fail.
"""
import re
from typing import Final

from gateway.core.errors import GatewayError
from gateway.core.request import Request
from gateway.pipeline.asking import newest, system, turns
from gateway.pipeline.ground import Ground
from gateway.policy.access import restrict
from gateway.policy.keys import Principal
from gateway.routing import wildcards
from gateway.routing.combos import Combo, unit
from gateway.routing.resolve import Resolution, resolution, resolve

MAX_CHARS: Final = 12_000                        # of all that the model must read
MAX_TURNS: Final = 6
MAX_ANSWER: Final = 4_096                        # tokens: who wants more wants no title
_HEAD: Final = 2_000                             # characters in which a task is named
SCOPE: Final = "background"                      # its own, so that no session of the dialogue proper is moved

_MAKE: Final = (r"\b(?:generat|writ|creat|produc|suggest|extract|giv|provid|propos|choos|return|output|respond with|reply with|"
                r"answer with|come up with|summari[sz])\w*\b")
# What is to be made, what of, and how short. All three, or it is somebody's real question.
_TITLE: Final = re.compile(_MAKE + r"[^\n]{0,90}\b(?:titles?|topics?|headlines?|subject lines?|names?|labels?)\b"
                           r"|\btitle (?:generator|writer|maker)\b", re.IGNORECASE)
_SUMMARY: Final = re.compile(r"\bsummar(?:y|i[sz]e|i[sz]ing)\b", re.IGNORECASE)
_OF: Final = re.compile(r"\b(?:conversations?|chats?|threads?|sessions?|dialog(?:ue)?s?|discussions?|messages?|chat history)\b",
                        re.IGNORECASE)
_COUNT: Final = r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|a few)"
_SHORT: Final = re.compile(rf"\b{_COUNT}(?:\s*(?:-|–|to|or)\s*{_COUNT})?[\s-]*(?:words?|characters?|chars|sentences?|lines?|tokens?)\b"
                           r"|\b(?:single|one)[ -](?:line|sentence|phrase)\b", re.IGNORECASE)
_BRIEF: Final = re.compile(r"\b(?:short|brief|concise|only)\b", re.IGNORECASE)


def chore(request: Request) -> bool:
    """Told by its size and its words."""
    if request.tools or request.images or request.n > 1 or request.chars > MAX_CHARS or (request.max_tokens or 0) > MAX_ANSWER:
        return False
    said = turns(request)
    if not 0 < len(said) <= MAX_TURNS or request.operation == "completions":
        return False
    words = f"{system(request)[:_HEAD]}\n{newest(said)[:_HEAD]}"
    if _OF.search(words) is None:
        return False
    if _TITLE.search(words) is not None:
        return _SHORT.search(words) is not None or _BRIEF.search(words) is not None
    return _SUMMARY.search(words) is not None and _SHORT.search(words) is not None


def cheaper(request: Request, asked: Resolution, principal: Principal, ground: Ground) -> Resolution:
    """The cheap model first, whoever was asked for behind it; ``asked`` where this is no chore, or nobody cheap may be used."""
    name = wildcards.first(request.model or "auto", ground.chores)
    if name is None or not chore(request):
        return asked
    try:
        cheap = resolve(name, ground.catalog)
        cheap = cheap.only(restrict(principal, cheap.requested, cheap.kind, cheap.targets))
    except GatewayError:
        return asked
    steps = (unit(_combo(cheap), f"{SCOPE}>cheap", 1.0), unit(_combo(asked), f"{SCOPE}>asked", 1.0))
    combo = Combo(SCOPE, "priority", steps)
    return resolution(combo.targets, asked.requested, asked.kind, combo=combo)


def _combo(found: Resolution) -> Combo:
    return Combo(found.scope, found.strategy, found.legs, found.settings)
