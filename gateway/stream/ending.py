"""What becomes of a choice when its turn is over: calls from deltas and from text, checked JSON, or a failure.

``settle`` judges one choice and changes nothing outside it, so that a turn can ask again, leniently, when no other
target is left. Lenient (also: after the commit point) means that text which cannot be understood is delivered as
text.
"""
import json
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from gateway.core.errors import GatewayError
from gateway.core.events import End, Event, Finish, Text, ToolCall, ToolDelta
from gateway.stream import dialects, structured
from gateway.stream.choices import Choice, blank
from gateway.stream.live import LiveCalls
from gateway.stream.rules import DIALECT, PASSTHROUGH, STRUCTURED, UNDECIDED, Rules
from gateway.stream.toolcalls import Calls

# An upstream that ended a choice for one of these reasons did so whatever was in the making: the reason stands, and a call
# that it cut is passed on as it is.
CUT: Final = frozenset({"length", "content_filter", "refusal"})

# Why a turn without any answer ended -> what that is; None: it is an answer all the same (contract 7).
EMPTY: Final[dict[str, str | None]] = {
    "length": "empty_length",
    "content_filter": None,
    "refusal": None,
    "pause": None,
}


class Ending(msgspec.Struct):
    """What a choice leaves with: the rest of its events, its calls, its reason. ``error`` instead when it fails."""
    events: list[Event]
    calls: list[ToolCall] = []
    error: GatewayError | None = None
    answers: bool = False
    touched: bool = False


def settle(choice: Choice, rules: Rules, lenient: bool) -> Ending:
    """Judge one choice; its undecided edges have been flushed."""
    if not choice.hold and choice.calls is None and choice.live is None:
        return Ending([], [], None, choice.said or choice.counted, choice.touched)
    if choice.live is not None:
        ending = _live(choice, choice.live)
    else:
        calls, error = _native(choice, rules, lenient)
        ending = Ending(list(choice.hold), calls, error) if calls or error else _ON_END[choice.mode](choice, rules, lenient)
    said = choice.said or any(type(event) is Text and not blank(event.text) for event in ending.events)
    ending.answers = said or choice.counted or choice.started or bool(ending.calls)
    ending.touched = ending.touched or choice.touched or choice.started or _mended(choice, ending.calls)
    return ending


def finish(choice: Choice, ending: Ending) -> Finish:
    """The one reason: calls make it ``tool_calls`` unless they were cut, no calls make ``tool_calls`` a ``stop``."""
    said = choice.finish
    called = bool(ending.calls) or choice.started
    if said is None:
        return Finish("tool_calls" if called else "stop", choice=choice.index)
    if called and said.reason not in CUT and said.reason != "tool_calls":
        return Finish("tool_calls", choice=choice.index)
    if not called and said.reason == "tool_calls":
        return Finish("stop", choice=choice.index)
    return said


def emptiness(choices: list[Choice], endings: list[Ending]) -> GatewayError | None:
    """The failure of a turn in which no choice answers anything; None if one does, or if its reason is the answer."""
    for ending in endings:
        if ending.answers:
            return None
    kinds = {EMPTY.get(choice.reason, "empty") for choice in choices}
    if None in kinds:
        return None
    if "empty_length" in kinds:
        return GatewayError("empty_length", "empty completion: the output limit was used up before any answer")
    return GatewayError("empty", "empty completion: no text, tool call, refusal or media")


def second_chance(error: GatewayError, rules: Rules, committed: bool) -> list[Event]:
    """The turn that a provider refused to pass on because its own parser failed; [] if the error carries none."""
    body = error.verbatim
    parsed = dialects.failed_generation(body, rules.tools) if body and rules.tools and rules.rescue else None
    if parsed is None:
        return []
    text: list[Event] = [Text(parsed.text)] if parsed.text and not committed else []
    calls = [ToolDelta(index=index, name=call.name, arguments=call.arguments, whole=True)
             for index, call in enumerate(parsed.calls)]
    return [*text, *calls, Finish("tool_calls"), End()]


def _live(choice: Choice, live: LiveCalls) -> Ending:
    """Calls that left as they came: their last pieces, and whether what has left is valid."""
    cut = choice.reason in CUT
    rest = live.close(cut)
    choice.started = choice.started or bool(rest)
    if live.invalid and not cut:
        return Ending([], error=_invalid(live.invalid))
    return Ending([*choice.hold, *rest])


def _native(choice: Choice, rules: Rules, lenient: bool) -> tuple[list[ToolCall], GatewayError | None]:
    """The calls that came as calls."""
    if choice.calls is None:
        return [], None
    calls = choice.calls.finished(rules.tools, cut=choice.reason in CUT)
    if choice.calls.invalid:
        return [], _invalid(choice.calls.invalid)
    if rules.validate_tool_arguments and not lenient and choice.reason not in CUT:
        problems = [f"{call.name[:64]}: {problem[:120]}" for call in calls if (problem := _violation(call, rules))]
        if problems:
            return [], _invalid(problems)
    return calls, None


def _invalid(problems: list[str]) -> GatewayError:
    return GatewayError("invalid_tool_arguments", ("invalid tool arguments: " + "; ".join(problems))[:240])


def _violation(call: ToolCall, rules: Rules) -> str:
    """Why the arguments break the declared schema; a schema that cannot be used checks nothing."""
    schema = rules.tools.get(call.name)
    if not schema or call.kind != "function" or len(call.arguments) > structured.MAX_CHECKED:
        return ""
    return structured.violation(json.loads(call.arguments), schema)


def _verbatim(choice: Choice, rules: Rules, lenient: bool) -> Ending:
    return Ending(list(choice.hold))


def _collected(choice: Choice, rules: Rules, lenient: bool) -> Ending:
    """Undecided at the end: nothing is held, unless the complete text was waited for."""
    return _rescue(choice, rules, lenient) if choice.whole else _verbatim(choice, rules, lenient)


def _rescue(choice: Choice, rules: Rules, lenient: bool) -> Ending:
    """Calls written as text; all of them or none, and never one that was not meant."""
    text = choice.held_text()
    at = dialects.scan(text)
    parsed = dialects.parse(text[at:], rules.tools) if at >= 0 else dialects.whole_json(text, rules.tools)
    if parsed is None and at < 0:
        return _verbatim(choice, rules, lenient)
    ending = _rescued(choice, rules, text[:max(at, 0)], parsed) if parsed is not None else None
    if ending is not None:
        return ending
    if lenient:
        return _verbatim(choice, rules, lenient)
    return Ending([], error=GatewayError("unparseable_dialect", "unparseable inline tool-call dialect"))


def _rescued(choice: Choice, rules: Rules, prose: str, parsed: dialects.Parsed) -> Ending | None:
    """Text and calls in place of the held text; None if they are not fit to be calls."""
    made = Calls()
    for index, call in enumerate(parsed.calls):
        made.add(ToolDelta(index=index, name=call.name, arguments=call.arguments, choice=choice.index, whole=True))
    calls = made.finished(rules.tools) if parsed.calls else []
    if made.invalid or not calls:
        return None
    events = [event for event in choice.hold if type(event) is not Text]
    rest = parsed.rest if choice.said or not blank(prose) else parsed.text
    events += [Text(text, choice=choice.index) for text in (prose, rest) if not blank(text)]
    return Ending(events, calls, touched=True)


def _structured(choice: Choice, rules: Rules, lenient: bool) -> Ending:
    """The text that was to be JSON. A tool turn need not be; neither must a refusal or what a filter cut."""
    text = choice.held_text()
    if blank(text) or choice.counted or choice.reason in ("content_filter", "refusal"):
        return _verbatim(choice, rules, lenient)
    assert rules.format is not None
    healed = structured.enforce(text, rules.format)
    exact = healed is not None and not healed.changed
    called = _called(choice, rules, text, exact) if choice.scan and not (exact and rules.format.strict) else None
    if called is not None:
        return called
    if healed is not None:
        return _verbatim(choice, rules, lenient) if exact else _replaced(choice, healed.text)
    if lenient:
        return _verbatim(choice, rules, lenient)
    if choice.reason != "length":
        return Ending([], error=GatewayError("format_ignored", "the upstream ignored response_format"))
    return Ending([], error=GatewayError("truncated_json", "truncated JSON: the answer was cut before it was complete"))


def _called(choice: Choice, rules: Rules, text: str, exact: bool) -> Ending | None:
    """A tool turn in an answer that was to be JSON. Valid JSON is only one if the whole of it is a call."""
    parsed = dialects.whole_json(text, rules.tools)
    at = 0
    if parsed is None and not exact and (at := dialects.scan(text)) >= 0:
        parsed = dialects.parse(text[at:], rules.tools)
    return _rescued(choice, rules, text[:max(at, 0)], parsed) if parsed is not None else None


def _replaced(choice: Choice, text: str) -> Ending:
    others: list[Event] = [event for event in choice.hold if type(event) is not Text]
    return Ending([*others, Text(text, choice=choice.index)], touched=True)


def _mended(choice: Choice, calls: list[ToolCall]) -> bool:
    """Do the calls differ from what a whole (non-stream) reply said? Objects for arguments were already rewritten."""
    if any(delta.whole for delta in choice.deltas):
        return True
    said = [(delta.id, delta.name, delta.arguments) for delta in choice.deltas]
    return bool(said) and said != [(call.id, call.name, call.arguments) for call in calls]


_ON_END: Final[Mapping[str, Callable[[Choice, Rules, bool], Ending]]] = {
    UNDECIDED: _collected,
    PASSTHROUGH: _verbatim,
    DIALECT: _rescue,
    STRUCTURED: _structured,
}
