"""Nobody is left: which honest status does the request get? Two ladders as pure functions (contract 7, last paragraph).

``exhausted``: attempts were made. Alike in cause, they give that cause its own status; mixed, 502 with the whole trail.
``nobody``: no attempt was possible, because nobody fits the request or everybody rests.
"""
from collections import Counter
from collections.abc import Sequence
from typing import Final, Protocol

from gateway.core.call import Attempt
from gateway.core.errors import GatewayError
from gateway.core.redact import clip
from gateway.routing import trail
from gateway.routing.outcomes import BUSY_KINDS, OUTCOMES, QUOTA_KINDS, REFUSED_KINDS
from gateway.routing.rows import Row, seconds, words

LAST_ERROR_CHARS: Final = 240
_DETAILS: Final = 5                       # targets that a message names

# First row that holds all causes names the kind of the answer; ``core.errors.KINDS`` has its status, type and code.
_ALIKE: Final[tuple[tuple[frozenset[str], str], ...]] = (
    (frozenset({"auth"}), "auth"),
    (frozenset({"model_not_found"}), "model_not_found"),
    (QUOTA_KINDS, "rate_limited"),
    (frozenset({"degraded"}), "degraded"),
    (BUSY_KINDS, "overloaded"),
    (frozenset({"timeout"}), "timeout"),
    (frozenset({"transport"}), "transport"),
    (frozenset({"server_error"}), "server_error"),
)
# These say that an attempt failed. Where none was made, it is only known that everybody rests: 503 and when to come back.
_TRIED: Final = frozenset({"timeout", "transport", "server_error"})
_STATED: Final = frozenset({429, 503})    # statuses that come with Retry-After

# Nobody fits, and nobody rests: the gate that the best of them reached. Gates are passed from the bottom up (walk.gate).
_MISFITS: Final[tuple[tuple[str, str, str, int | None, str | None, str | None], ...]] = (
    # reason, kind, text, status, code, param
    ("too_large", "context_too_large", "The request is too large for every model that could serve it", None, None, "messages"),
    ("n", "bad_request", "No target of this model can give several choices in one answer; ask with n = 1", None, None, "n"),
    ("tools", "unprocessable", "No target of this model can call tools", 422, "no_tools_model", "tools"),
    ("vision", "unprocessable", "No target of this model can see images", 422, "no_vision_model", "messages"),
)


class Resting(Protocol):
    """What the ladder asks of a walk."""

    def soonest_retry(self, now: float) -> float | None: ...


def exhausted(attempts: Sequence[Attempt], walk: Resting, now: float, wall: float, timed_out: bool) -> GatewayError:
    """The answer when at least one attempt was made and none came through."""
    hops = [(hop, hop.error) for hop in attempts if hop.error is not None]
    if not hops:
        return GatewayError("timeout", "The time for this request is over.")
    errors = [error for _, error in hops]
    last, kinds = errors[-1], {error.kind for error in errors}
    if not OUTCOMES[last.kind].moves_on:
        return _own_words(last)
    if kinds <= REFUSED_KINDS:
        return _own_words(errors[0])
    kind = _alike(kinds) or "exhausted"
    text = _told([hop for hop, _ in hops], timed_out, tally=kind == "exhausted" and len(kinds) > 1)
    return _answer(kind, f"{text} Last error: {clip(last.message, LAST_ERROR_CHARS)}", walk.soonest_retry(now), wall,
                   upstream_status=last.upstream_status)


def nobody(rows: Sequence[Row], requested: str, now: float, wall: float) -> GatewayError:
    """The answer when nobody could be asked. Who rests could have served, so that cause comes first."""
    waiting = [row for row in rows if row.until > now]
    if waiting:
        kinds = {row.kind for row in waiting}
        soonest_s = min(row.until for row in waiting) - now
        kind = "rate_limited" if kinds & (QUOTA_KINDS | {"limited"}) else _alike(kinds) or "overloaded"
        if kind in _TRIED:
            kind = "overloaded"
        text = f"Every target of {requested!r} rests; the next may be asked in {seconds(soonest_s)}. {_list(waiting, now)}"
        return _answer(kind, text, soonest_s, wall)
    reasons = {row.reason for row in rows}
    for reason, kind, text, status, code, param in _MISFITS:
        if reason in reasons:
            misfits = [row for row in rows if row.reason == reason]
            return GatewayError(kind, f"{text}. {_list(misfits, now)}", status=status, code=code, param=param)
    return GatewayError("no_provider", f"No provider with a key serves {requested!r}.")


def _own_words(error: GatewayError) -> GatewayError:
    """The provider's refusal as it was, with the 4xx that it gave."""
    said = error.upstream_status
    if said is not None and 400 <= said < 500:
        error.status = said
    return error


def _answer(kind: str, text: str, retry_s: float | None, wall: float, upstream_status: int | None = None) -> GatewayError:
    error = GatewayError(kind, text, upstream_status=upstream_status)
    if error.status in _STATED:
        error.retry_after_s = retry_s if retry_s is not None else 1.0
        error.extra = {"retryAtMs": round((wall + error.retry_after_s) * 1000)}
    return error


def _alike(kinds: set[str]) -> str | None:
    return next((kind for group, kind in _ALIKE if kinds <= group), None)


def _told(hops: Sequence[Attempt], timed_out: bool, tally: bool) -> str:
    """How many attempts, why no more, of which kinds, and the trail."""
    n = len(hops)
    text = "The only attempt failed" if n == 1 else f"All {n} attempts failed"
    if timed_out:
        text += " and the time for more is over"
    if tally:
        counts = Counter(hop.error.kind for hop in hops if hop.error is not None)
        text += f" ({', '.join(f'{kind} x{count}' for kind, count in counts.most_common())})"
    return f"{text}. Attempt trail: {trail.sentence(hops)}."


def _list(rows: Sequence[Row], now: float) -> str:
    told = [_named(row, now) for row in rows[:_DETAILS]]
    more = len(rows) - _DETAILS
    return "; ".join(told) + (f"; and {more} more" if more > 0 else "") + "."


def _named(row: Row, now: float) -> str:
    account = f" key {row.candidate.account.ordinal}" if row.candidate is not None and len(row.target.candidates) > 1 else ""
    return f"{row.target.label}{account} {words(row, now)}"
