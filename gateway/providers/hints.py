"""What numbers does a provider state when it refuses? When to come back, and how much it takes.

Times are believed (contract 7), shorter or longer than our own guess, between one second and a day. Sources, most exact
first: ``retry-after-ms``, ``Retry-After``, fields of the body (``retryDelay`` of google.rpc.RetryInfo), prose, and the reset
headers of a limit that is used up.
"""
import datetime
import email.utils
import re
import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec

MIN_S: Final = 1.0
MAX_S: Final = 86_400.0
_DEPTH = 6
_NODES = 500
_SCAN = 4_096

_UNIT_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_UNIT = r"(ms|millis\w*|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)"
_PIECE = re.compile(rf"(\d+(?:\.\d+)?)\s*{_UNIT}(?![a-z])", re.I)
_SPAN = rf"(?:\d+(?:\.\d+)?\s*{_UNIT}(?![a-z])[\s,]*(?:and\s+)?)+"
_DURATION = re.compile(rf"\s*{_SPAN}\s*", re.I)
_PROSE = re.compile(r"\b(?:try again|retry(?:ing)?|retried|wait|resets?|available(?: again)?|come back)"
                    rf"(?:\s+(?:your request|again|in|after|for|at least|about|approximately|another)){{0,4}}\s+({_SPAN})", re.I)
_NUMBER = re.compile(r"\s*-?\d+(?:\.\d+)?\s*")
_ISO = re.compile(r"\s*\d{4}-\d\d-\d\dT")

_BODY_KEYS: Final = {"retrydelay": 1.0, "retryafter": 1.0, "retryafterseconds": 1.0, "retryafters": 1.0,
                     "retryafterms": 0.001, "retryaftermilliseconds": 0.001, "secondsuntilretry": 1.0}
# header of the reset -> header of what is left
_RESETS: Final = tuple(
    (f"{prefix}reset{suffix}", f"{prefix}remaining{suffix}")
    for prefix in ("x-ratelimit-", "ratelimit-")
    for suffix in ("", "-requests", "-tokens", "-input-tokens", "-requests-day", "-requests-minute", "-tokens-day",
                   "-tokens-minute")
) + tuple((f"anthropic-ratelimit-{what}-reset", f"anthropic-ratelimit-{what}-remaining")
          for what in ("requests", "tokens", "input-tokens", "output-tokens"))


def retry_after_s(headers: Mapping[str, str], payload: Any, text: str, *, resets: bool,
                  wall: float | None = None) -> float | None:
    """The stated time in seconds, clamped; None when nothing is stated. ``resets``: believe the reset headers of limits that
    are used up (only an answer that says "too many" makes them a time to come back)."""
    low = {str(name).lower(): str(value) for name, value in headers.items()}
    now = _now(low, wall)
    stated = _milliseconds(low.get("retry-after-ms"))
    if stated is None:
        stated = _when(low.get("retry-after"), now)
    if stated is None:
        stated = _in_body(payload, now)
    if stated is None:
        stated = in_prose(text)
    if stated is None and resets:
        stated = _reset(low, payload, now)
    return None if stated is None else min(max(stated, MIN_S), MAX_S)


def stated_s(value: str | None, wall: float) -> float | None:
    """Seconds from now that one header field states, not clamped: a number, a duration, an epoch or an ISO time."""
    return _when(value, wall)


def in_prose(text: str) -> float | None:
    """``try again in 9m38.016s``, ``retry after 2m``: seconds, or None."""
    found = _PROSE.search(text[:_SCAN])
    return _seconds(found[1]) if found else None


def _seconds(span: str) -> float:
    total = 0.0
    for number, unit in _PIECE.findall(span):
        short = unit.lower()
        total += float(number) * _UNIT_S["ms" if short.startswith(("ms", "milli")) else short[0]]
    return total


def _milliseconds(value: str | None) -> float | None:
    return float(value) / 1_000 if value and _NUMBER.fullmatch(value) else None


def _when(value: Any, now: float) -> float | None:
    """Seconds from now that a field states: a number, a duration, an HTTP date, an ISO time, an epoch time."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, dict):                     # google.protobuf.Duration as an object
        return _when(value.get("seconds"), now)
    if isinstance(value, (int, float)) or (isinstance(value, str) and _NUMBER.fullmatch(value)):
        number = float(value)
        if number > 1e12:
            return number / 1_000 - now
        return number - now if number > 1e9 else number
    if not isinstance(value, str) or len(value) > 64:
        return None
    if _DURATION.fullmatch(value):
        return _seconds(value)
    try:
        if _ISO.match(value):
            moment = datetime.datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
        else:
            moment = email.utils.parsedate_to_datetime(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return None


def _now(low: Mapping[str, str], wall: float | None) -> float:
    """The provider's own clock where it tells it: a date is relative to that, however wrong ours is."""
    if wall is not None:
        return wall
    try:
        return email.utils.parsedate_to_datetime(low["date"]).timestamp()
    except (KeyError, ValueError, TypeError, OverflowError):
        return time.time()


def _in_body(payload: Any, now: float) -> float | None:
    """Breadth first, so that the outermost statement wins."""
    level, left = [payload], _NODES
    for _ in range(_DEPTH):
        below: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                for key, value in node.items():
                    scale = _BODY_KEYS.get(re.sub(r"[^a-z]", "", str(key).lower()))
                    if scale is not None and (stated := _when(value, now)) is not None:
                        return stated * scale
                    below.append(value)
            elif isinstance(node, list):
                below += node
        level, left = [n for n in below if isinstance(n, (dict, list))][:left], left - len(below)
        if not level or left <= 0:
            break
    return None


def _reset(low: Mapping[str, str], payload: Any, now: float) -> float | None:
    """The latest reset among the limits of which nothing is left. OpenRouter puts the headers into the body."""
    inner = payload
    for name in ("error", "metadata", "headers"):
        inner = inner.get(name) if isinstance(inner, dict) else None
    all_headers = dict(low)
    if isinstance(inner, dict):
        all_headers |= {str(name).lower(): str(value) for name, value in inner.items()}
    times = [stated for reset, left in _RESETS
             if all_headers.get(left, "").strip() == "0" and (stated := _when(all_headers.get(reset), now)) is not None]
    return max(times, default=None)


class LimitsHint(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of a refusal; None = not stated. ``metric`` is rpm, rpd, tpm or tpd and belongs to ``limit``.
    ``requested`` is the real size of the request in tokens, ``context`` and ``max_output`` are the model's own limits."""
    metric: str | None = None
    limit: int | None = None
    requested: int | None = None
    context: int | None = None
    max_output: int | None = None

    def __bool__(self) -> bool:
        return self.limit is not None or self.requested is not None or self.context is not None or self.max_output is not None


_N = r"`?(\d[\d,_]{0,14})`?"
_METRIC = re.compile(r"\b([RT]P[MD])\b|\b(requests?|tokens?)[\s_]*(?:per|/|a)[\s_]*(min(?:ute)?|day)|"
                     r"(Requests|Tokens)\w*?Per(?:\w*?Per)?(Minute|Day)", re.I)
_LIMIT = re.compile(rf"\blimit:?\s*{_N}|\blimit\b.{{0,90}}?\bof\s+{_N}\s+\w*\s*(?:requests|tokens) per", re.I)
_REQUESTED = re.compile(
    rf"\brequested:?\s+(?:about\s+)?{_N}|\bat least\s+{_N}\s+input tokens|{_N}\s+tokens\s*>|"
    rf"\btokens?(?:\s+count)?\s*\({_N}\)\s*exceed|\b(?:resulted in|contains?|has)\s+{_N}\s+(?:input\s+)?tokens", re.I)
_CONTEXT = re.compile(
    rf"(?:maximum context length|context (?:length|window|size))\s*(?:is|of|:|\()?\s*(?:only\s+)?{_N}|tokens\s*>\s*{_N}\s*maximum|"
    rf"maximum number of tokens allowed\s*\({_N}\)|limit for this model is\s+{_N}\s+tokens", re.I)
_OUTPUT = re.compile(
    rf"at most\s+{_N}\s+(?:completion|output) tokens|max(?:imum)?[_ ](?:completion[_ ]|output[_ ])?tokens\W.{{0,40}}?"
    rf"(?:less than or equal to|<=|at most|maximum(?: value)?(?: is| of)?|>)\s*{_N}", re.I)


def limits_hint(text: str) -> LimitsHint:
    """What a message says about limits and sizes; falsy when it says nothing."""
    text = text[:_SCAN]
    limit, metric = _first(_LIMIT, text), None
    if limit is not None:
        metric = _metric(text)
    return LimitsHint(metric=metric, limit=limit if metric else None, requested=_first(_REQUESTED, text),
                      context=_first(_CONTEXT, text), max_output=_first(_OUTPUT, text))


def _metric(text: str) -> str | None:
    found = _METRIC.search(text)
    if found is None:
        return None
    if found[1]:
        return found[1].lower()
    what, per = (found[2] or found[4]).lower(), (found[3] or found[5]).lower()
    return f"{what[0]}p{per[0]}"


def _first(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    if found is None:
        return None
    digits = next(group for group in found.groups() if group is not None)
    return int(digits.replace(",", "").replace("_", ""))
