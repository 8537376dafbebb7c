"""Which engines run at which level, in which order, and what came of it?

``causal`` engines make of a message what they made of it in every earlier request, so a provider's cached prefix stays valid; the
others change older messages in hindsight, in steps, and never what lies before a client's own cache marker. Nobody touches the
leading system texts, the first task and the user's last turn: a system text that is altered twice and left alone from the third
request on would miss the cache once for nothing.

Repetitions are looked for behind what filters and rewrites: they refer to what is really sent.
"""
import time
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from gateway.compress import aging, dedup, gate, hard_budget, jsoncompact, lite, read_lifecycle, relevance, toolfilter
from gateway.compress.segment import Edit, Segment, Talk
from gateway.compress.words import OMITTED
from gateway.tokens.estimate import CHARS_PER_TOKEN

MODES: Final = ("off", "lossless", "standard", "aggressive")
STEPS: Final = 8                                 # a budget is cut by eighths of it
AUTO_SHARE: Final = 0.9
FAILED: Final = "the engine failed"
FROZEN: Final = "frozen"


class Engine(msgspec.Struct, frozen=True):
    name: str
    mode: str                                    # from which on it runs
    causal: bool
    run: Callable[[Talk], Iterator[Edit]]


ENGINES: Final = (
    Engine("read-lifecycle", "standard", False, read_lifecycle.run),
    Engine("toolfilter", "standard", True, toolfilter.run),
    Engine("jsoncompact", "lossless", True, jsoncompact.run),
    Engine("lite", "lossless", True, lite.run),
    Engine("dedup", "lossless", True, dedup.run),
    Engine("relevance", "aggressive", False, relevance.run),
    Engine("aging", "aggressive", False, aging.run),
    Engine("hard-budget", "aggressive", False, hard_budget.run),
)


# Who finds one of these has a conversation before it that was compressed already, by a gateway before this one: it stays as it is.
MARKS: Final = (dedup.MARK, lite.AGAIN, read_lifecycle.MARK, aging.MARK, OMITTED)


class Stage(msgspec.Struct):
    """What one engine did. ``discarded``: why, and how often."""
    engine: str
    edits: int = 0
    saved_chars: int = 0
    discarded: dict[str, int] = {}
    ms: float = 0.0


class Outcome(msgspec.Struct, kw_only=True):
    mode: str
    stages: list[Stage] = []
    changed: list[Segment] = []
    chars_before: int = 0
    chars_after: int = 0
    saved_tokens: int = 0
    ms: float = 0.0


class Aim(msgspec.Struct, frozen=True):
    """``tokens``: of the whole prompt. ``target``: engines stop once it is met; 0 = none."""
    mode: str
    tokens: int = 0
    target: int = 0


def level(mode: str) -> int:
    return MODES.index(mode)


def compress(talk: Talk, aim: Aim, rest: Callable[[], None] = lambda: None, engines: tuple[Engine, ...] = ENGINES) -> Outcome:
    """Run the engines on a conversation; its segments carry the new texts afterwards. ``rest`` is called between pieces of work."""
    began = time.perf_counter()
    originals = [segment.text for segment in talk.segments]
    outcome = Outcome(mode=aim.mode, chars_before=sum(map(len, originals)))
    tokens = aim.tokens
    for engine in () if marked(talk) else engines:
        if level(engine.mode) > level(aim.mode):
            continue
        over = tokens - aim.target if aim.target else 0
        if aim.target and over <= 0:
            break
        talk.need = _stepped(over, aim.target)
        stage = _stage(engine, talk, rest)
        tokens -= stage.saved_chars // CHARS_PER_TOKEN
        outcome.stages.append(stage)
    for segment, before in zip(talk.segments, originals, strict=True):
        if segment.text is not before:
            outcome.changed.append(segment)
    outcome.chars_after = sum(len(segment.text) for segment in talk.segments)
    outcome.saved_tokens = (outcome.chars_before - outcome.chars_after) // CHARS_PER_TOKEN
    outcome.ms = (time.perf_counter() - began) * 1e3
    return outcome


def marked(talk: Talk) -> bool:
    return any(mark in segment.text for segment in talk.segments if segment.role != "user" for mark in MARKS)


def _stepped(over: int, target: int) -> int:
    """Characters to be cut: up to the next step, so that the next request needs no other cut."""
    step = max(1, target // STEPS)
    return -(-over // step) * step * CHARS_PER_TOKEN if over > 0 else 0


def _stage(engine: Engine, talk: Talk, rest: Callable[[], None]) -> Stage:
    """One engine, its edits judged one by one. If it fails, nothing of what it did stays."""
    stage = Stage(engine.name)
    began = time.perf_counter()
    undo: list[tuple[Segment, str]] = []
    held: list[Segment] = []
    try:
        for edit in engine.run(talk):
            segment = edit.segment
            frozen = segment.locked or (segment.pinned and not engine.causal)
            reason = FROZEN if frozen else gate.verdict(edit)
            if reason:
                stage.discarded[reason] = stage.discarded.get(reason, 0) + 1
            else:
                undo.append((segment, segment.text))
                stage.edits += 1
                stage.saved_chars += len(segment.text) - len(edit.text)
                segment.text = edit.text
                held += [source for source in edit.holds if not source.held]
                for source in edit.holds:
                    source.held = True
            rest()
    except Exception:
        for segment, text in reversed(undo):
            segment.text = text
        for segment in held:
            segment.held = False
        stage = Stage(engine.name, discarded={**stage.discarded, FAILED: 1})
    stage.ms = (time.perf_counter() - began) * 1e3
    return stage


def asked(header: str, configured: str) -> tuple[str, bool]:
    """(mode, may it be raised by the size of the prompt?). The caller may lower, never raise; off is off on either side."""
    word = header.strip().lower()
    if configured == "off" or word in OFF:
        return "off", False
    if word in MODES:
        return (word if level(word) < level(configured) else configured), False
    return configured, True


OFF: Final = frozenset({"off", "no", "0", "false", "bypass", "skip"})


def aimed(header: str, configured: str, tokens: int, auto_trigger: int, target: int) -> Aim:
    """What a request gets: by its header, the configuration and its size."""
    mode, default = asked(header, configured)
    if default and auto_trigger and tokens >= auto_trigger:
        return Aim("aggressive", tokens, int(auto_trigger * AUTO_SHARE))
    return Aim(mode, tokens, target)
