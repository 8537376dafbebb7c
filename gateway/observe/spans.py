"""What does a span say? The facts of a finished call in OpenTelemetry's words; plain data, no SDK.

Nothing of what was asked or answered is in them, only names, numbers and kinds of failures.
"""
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from gateway.core.call import Attempt, Call
from gateway.core.events import Usage
from gateway.core.trace import Trace, span_id
from gateway.observe import semconv as sc
from gateway.providers.registry import Provider

Attributes = dict[str, Any]
FAILED: Final = frozenset({"failed", "broken"})
MAX_CHARS: Final = 300
PORTS: Final = {"https": 443, "http": 80}


class Event(msgspec.Struct, frozen=True):
    name: str
    at: float                                    # epoch seconds, as everywhere here
    attributes: Attributes


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """``failure``: what is told of an error; "" = there was none."""
    name: str
    server: bool
    span_id: str
    parent_id: str
    started: float
    ended: float
    attributes: Attributes
    events: tuple[Event, ...] = ()
    failure: str = ""


class Upstream(msgspec.Struct, frozen=True):
    """A provider, as telemetry names it."""
    name: str
    address: str
    port: int


def upstream(provider: Provider) -> Upstream:
    parts = urlsplit(provider.base_url)
    host = parts.hostname or ""
    name = next((name for end, name in sc.PROVIDERS if f".{host}".endswith(end if end[0] == "-" else f".{end}")), provider.id)
    try:
        port = parts.port or PORTS.get(parts.scheme, 0)
    except ValueError:
        port = 0
    return Upstream(name, host, port)


def spans(call: Call, trace: Trace, upstreams: Mapping[str, Upstream]) -> list[Span]:
    """One for the request, one for each attempt."""
    shift = call.wall - call.started                 # what makes epoch seconds of ours
    operation = sc.OPERATIONS.get(call.operation, call.operation)
    return [served(call, trace, operation, shift),
            *(tried(attempt, call, trace, operation, shift, upstreams.get(attempt.provider)) for attempt in call.attempts)]


def served(call: Call, trace: Trace, operation: str, shift: float) -> Span:
    request, error = call.request, call.error
    asked = request.model[:MAX_CHARS] if request is not None else ""
    said = {sc.OPERATION: operation, sc.REQUEST_MODEL: asked, sc.REQUEST_ID: call.id, sc.SURFACE: call.surface, sc.KEY: call.principal,
            sc.CLIENT: call.client, sc.OUTCOME: call.outcome, sc.ATTEMPTS: len(call.attempts), sc.STRATEGY: call.strategy,
            sc.DECISION: call.decision[:MAX_CHARS], sc.CACHE: call.cache, sc.CONVERSATION: call.session, sc.HTTP_STATUS: call.status,
            sc.COST: call.cost_usd, sc.ERROR: error.kind if error is not None else "", **_usage(call.usage)}
    if call.stream:
        said[sc.REQUEST_STREAM] = True
    return Span(name=f"{operation} {asked}".rstrip(), server=True, span_id=trace.span_id, parent_id=trace.parent_id,
                started=call.wall, ended=call.ended + shift, attributes=_known(said), events=tuple(_events(call, shift)),
                failure=error.message[:MAX_CHARS] if error is not None and call.outcome in FAILED else "")


def tried(attempt: Attempt, call: Call, trace: Trace, operation: str, shift: float, at: Upstream | None) -> Span:
    error = attempt.error
    said = {sc.OPERATION: operation, sc.PROVIDER: at.name if at is not None else attempt.provider, sc.REQUEST_MODEL: attempt.model,
            sc.RESPONSE_ID: attempt.upstream_id, sc.RESPONSE_MODEL: attempt.upstream_model, sc.ACCOUNT: attempt.account,
            sc.HTTP_STATUS: attempt.status, sc.COST: attempt.cost_usd, sc.HEDGED: attempt.hedged or None,
            sc.ERROR: error.kind if error is not None else "", **_usage(attempt.usage), **_asked(call)}
    if at is not None:
        said |= {sc.SERVER_ADDRESS: at.address, sc.SERVER_PORT: at.port}
    if attempt.first_token_at:
        said[sc.RESPONSE_FIRST_CHUNK] = attempt.first_token_at - attempt.started
    if attempt.committed and call.finish:
        said[sc.RESPONSE_FINISH] = (call.finish,)
    return Span(name=f"{operation} {attempt.model}", server=False, span_id=attempt.span_id or span_id(), parent_id=trace.span_id,
                started=attempt.started + shift, ended=(attempt.ended or call.ended) + shift, attributes=_known(said),
                failure=error.message[:MAX_CHARS] if error is not None and error.kind != "client_gone" else "")


def _asked(call: Call) -> Attributes:
    """The knobs of a request, as far as somebody has read them."""
    request = call.request
    if request is None:
        return {}
    said: Attributes = {sc.REQUEST_MAX_TOKENS: request.max_tokens, sc.REQUEST_CHOICES: request.n if request.n > 1 else None}
    if request.conversation is not None:
        knobs = request.conversation.sampling
        said |= {sc.REQUEST_TEMPERATURE: knobs.temperature, sc.REQUEST_TOP_P: knobs.top_p, sc.REQUEST_TOP_K: knobs.top_k,
                 sc.REQUEST_SEED: knobs.seed}
    return said


def _usage(usage: Usage | None) -> Attributes:
    if usage is None:
        return {}
    return {sc.USAGE_INPUT: usage.input, sc.USAGE_OUTPUT: usage.output, sc.USAGE_CACHE_READ: usage.cached or None,
            sc.USAGE_CACHE_WRITE: usage.cache_write or None, sc.USAGE_REASONING: usage.reasoning or None}


def _events(call: Call, shift: float) -> list[Event]:
    """The moves to another target, and the moment from which nothing could be taken back."""
    found = [Event(sc.EVENT_FAILOVER, before.ended + shift,
                   {sc.FAILED_TARGET: before.label, sc.NEXT_TARGET: after.label, sc.ERROR: before.error.kind})
             for before, after in zip(call.attempts, call.attempts[1:], strict=False)
             if before.error is not None and after.started >= before.ended]
    if call.committed_at:
        found.append(Event(sc.EVENT_COMMIT, call.committed_at + shift, _known({sc.NEXT_TARGET: call.routed})))
    return found


def _known(said: Attributes) -> Attributes:
    """Without what is unknown: nothing, or an empty name."""
    return {name: value for name, value in said.items() if value is not None and value != ""}
