"""Which placeholder stands for which value in one request? The same value has the same one everywhere; what comes back is put back.

A text is gone through once, so that a placeholder is never looked at again. In JSON, what is no text (a card number that is a
number) becomes one, so that JSON stays JSON.
"""
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from gateway.policy.guardrails.find import Kind, Scan, Span
from gateway.wire.lenient import dump, load

_PLACEHOLDER: Final = re.compile(r"\[([A-Z]+(?:_[A-Z]+)*)_(\d{1,6})\]")
_RESTORE: Final = Kind("", "", lambda text, pos: _known(text, pos), r"\[[A-Z_]{0,24}\d{0,6}\Z")
DEPTH: Final = 64


def _known(text: str, pos: int) -> Span | None:
    found = _PLACEHOLDER.search(text, pos)
    return found.span() if found is not None else None


class Masks:
    """Of one request. ``answers``: kinds that are hidden in answers; ``n``: by kind, how many values there were."""

    __slots__ = ("answers", "asked", "n", "said", "_back", "_in", "_numbers", "_out", "_restores", "_taken")

    def __init__(self, asked: Sequence[Kind], answers: Sequence[Kind] = (), restores: Iterable[str] = ()) -> None:
        self.asked = Scan(asked)
        self._restores = frozenset(restores)         # names of kinds that are put back
        self.answers = tuple(answers)
        self._out = Scan((_RESTORE, *answers) if self._restores else answers)
        self._in = Scan(answers)                     # of thoughts, in which nothing is put back: their maker has signed them
        self.n: dict[str, int] = {}
        self.said: dict[str, int] = {}
        self._back: dict[str, str] = {}              # placeholder -> value
        self._numbers: dict[tuple[str, str], str] = {}
        self._taken: set[str] = set()                # placeholders that the caller wrote

    @property
    def active(self) -> bool:
        """Is there anything to be done to the answer?"""
        return bool(self.answers) or any(kind in self._restores for kind in self.n)

    def reserve(self, texts: Iterable[str]) -> None:
        """Placeholders that the caller wrote stand for themselves, where values are put back."""
        if self._restores:
            for text in texts:
                if "[" in text:
                    self._taken.update(found[0] for found in _PLACEHOLDER.finditer(text))

    # ------------------------------------------------------------------ requests
    def mask(self, text: str) -> str:
        """What upstreams may see; the very same where there is nothing to hide."""
        return self._told(text, self.asked, self.n)[0] if text else text

    def mask_json(self, text: str) -> str:
        """The same of a text that is JSON."""
        return self._json(text, self.mask)

    def hidden(self, text: str) -> str:
        """A text that the client was told, as upstreams may see it."""
        for placeholder, value in sorted(self._back.items(), key=lambda pair: -len(pair[1])):
            text = text.replace(value, placeholder)
        return text

    # ------------------------------------------------------------------ answers
    def leaving(self, text: str, pos: int, last: bool, thought: bool) -> tuple[str, int]:
        """(what the client is told of it, up to where it is settled); what lies before ``pos`` has left already."""
        return self._told(text, self._in if thought else self._out, self.said, pos, last)

    def arguments(self, text: str) -> str:
        """Those of a tool, whole."""
        return self._json(text, lambda leaf: self._told(leaf, self._out, self.said)[0])

    # ------------------------------------------------------------------ inside
    def _told(self, text: str, scan: Scan, n: dict[str, int], pos: int = 0, last: bool = True) -> tuple[str, int]:
        spans, edge = scan.spans(text, pos, last)
        if not spans:
            return (text if not pos and edge == len(text) else text[pos:edge]), edge
        out: list[str] = []
        for kind, start, end in spans:
            out += text[pos:start], self._instead(kind, text[start:end], n)
            pos = end
        out.append(text[pos:edge])
        return "".join(out), edge

    def _instead(self, kind: Kind, value: str, n: dict[str, int]) -> str:
        if kind is _RESTORE:
            return self._back.get(value, value)
        found = self._numbers.get((kind.name, value))
        if n is self.said and found in self._back:
            return value                             # the caller's own
        n[kind.name] = n.get(kind.name, 0) + 1
        return found or self._numbered(kind.name, value, keep=n is self.n)

    def _numbered(self, name: str, value: str, keep: bool) -> str:
        number = sum(1 for kind, _ in self._numbers if kind == name) + 1
        while (placeholder := f"[{name}_{number}]") in self._taken:
            number += 1
        self._taken.add(placeholder)
        self._numbers[name, value] = placeholder
        if keep and name in self._restores:
            self._back[placeholder] = value
        return placeholder

    def _json(self, text: str, change: Any) -> str:
        try:
            doc, _ = load(text.encode("utf-8", "surrogatepass"))
            made = _leaves(doc, change)
            return text if made is doc else dump(made).decode()
        except (ValueError, RecursionError):
            return str(change(text))                 # no JSON, or not yet: a text


def _leaves(value: Any, change: Any, depth: int = 0) -> Any:
    """The value with its texts changed; the very same where none was. A number that is to be hidden becomes a text."""
    if isinstance(value, str):
        made = change(value)
        return value if made == value else made
    if isinstance(value, int) and not isinstance(value, bool):
        told = change(str(value))
        return value if told == str(value) else told
    if depth >= DEPTH:
        raise ValueError("nested too deeply")
    if isinstance(value, list):
        items = [_leaves(item, change, depth + 1) for item in value]
        return value if all(made is item for made, item in zip(items, value, strict=True)) else items
    if isinstance(value, dict):
        pairs = {change(key): _leaves(item, change, depth + 1) for key, item in value.items()}
        return value if all(pairs.get(key, pairs) is item for key, item in value.items()) else pairs
    return value
