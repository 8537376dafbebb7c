"""What happened to one request: Call (facts of the request) and Attempt (facts of one try). Append-only.

Two of the three mutable objects of a request; the third is the turn. Everything that records, counts or explains reads these
and nothing else.
"""
from typing import Any, Final

import msgspec

from gateway.core.errors import GatewayError
from gateway.core.request import Request


class Attempt(msgspec.Struct, kw_only=True):
    """One try at one target with one account. Times are monotonic seconds; ``key`` is 1, 2 … by appearance in this request."""
    label: str                                  # provider/model
    provider: str
    model: str
    key: int
    started: float
    account: str = ""                           # its label, or its place among the provider's keys: for the operator's eyes
    ended: float = 0.0
    headers_at: float = 0.0
    error: GatewayError | None = None           # why it failed, before or after the commit
    committed: bool = False
    role: str = ""                              # panel · judge · resumed: what it was for; "" = to answer
    rank: int = 0                               # its target's place in the order of the walk, from 1
    hedged: bool = False                        # lost a race: another target was asked at the same time and answered first
    status: int = 0                             # the upstream's HTTP status
    upstream_id: str = ""
    upstream_model: str = ""
    drift: bool = False                         # the upstream says that it served another model than it was asked for
    usage: Any = None                           # core.events.Usage: what it took, also where it failed; None = nothing is known
    price: Any = None                           # prices.Price of its model; None = unknown
    cost_usd: float | None = None               # None = unknown, which is not nothing
    first_token_at: float = 0.0
    upstream_s: float = 0.0                     # of its time, what was spent waiting for the upstream
    waiting_from: float = 0.0                   # since when it waits now; 0 = it does not
    span_id: str = ""                           # of its span, where the upstream was told

    @property
    def error_class(self) -> str:
        """The kind of its failure (core.errors.KINDS), "" = none."""
        return self.error.kind if self.error is not None else ""


# Statuses that say the request itself was wrong: its sender is told, and nobody else can mend it.
OWN_FAULT: Final = frozenset({400, 404, 413, 415, 422})


class Remark(msgspec.Struct, frozen=True):
    """What the gateway did to a request or its answer on its own account: ``what`` is context or the name of a guard."""
    what: str
    action: str                                 # trimmed · masked · warned · blocked · replaced · failed
    count: int = 1
    text: str = ""


class Call(msgspec.Struct, kw_only=True):
    """One request from its first byte to its record. ``outcome`` is set once, at the end:
    ok · failed (before anything left) · broken (after the commit) · client_gone · refused (never tried)."""
    id: str
    surface: str
    wire: str
    operation: str
    started: float
    wall: float
    path_model: str = ""                        # what the path says, on surfaces whose paths do
    path_stream: bool | None = None
    request: Request | None = None
    principal: str = ""                         # name of the client key; "" = none was needed
    role: str = ""                              # "shadow": a copy that no client waits for; "" = a client's own
    client: str = ""                            # family of the program that asks (core.agents)
    session: str = ""                           # routing.affinity.session_key, where somebody asked for it
    response_id: str = ""                       # under which the answer will be kept (Responses)
    attempts: list[Attempt] = []
    accounts: dict[tuple[str, int], int] = {}   # (provider, account) -> its number in this request's trail
    retold: bool = False                        # an upstream was told more, or less, than the client said
    stream: bool = False
    status: int = 0
    outcome: str = ""
    error: GatewayError | None = None
    routed: str = ""
    strategy: str = ""                          # by which the targets were put in order
    places: int = 0                             # how many there were in that order
    decision: str = ""                          # why in this order, in a line
    first_token_at: float = 0.0
    committed_at: float = 0.0
    ended: float = 0.0
    usage: Any = None                           # core.events.Usage of the answer
    cost_usd: float | None = None               # of all attempts; None = of one it is unknown
    panel: Any = None                           # pipeline.fusion.panel.Panel, of which this call is the last word
    hold: Any = None                            # policy.budget.Hold: what it has reserved of its caller's budgets
    bodies: Any = None                          # pipeline.captured.Bodies, where they are kept (log.capture_bodies)
    finish: str = ""
    bytes_out: int = 0
    trace: Any = None                           # core.trace.Trace, where requests are traced
    guard: Any = None                           # policy.guardrails.masks.Masks: what was hidden in it, where the answer depends on it
    remarks: tuple[Remark, ...] = ()            # what was done to it that nobody asked for
    cache: str = ""                             # cache · idempotency: given again; "" = asked upstream

    @property
    def refused(self) -> bool:
        """Did nobody fail, since it was wrong itself, or was not let in?"""
        return self.outcome == "refused" or (self.outcome == "failed" and self.error is not None and self.error.status in OWN_FAULT)

    @property
    def resumed(self) -> bool:
        """Was the answer of one target gone on with by another one?"""
        return any(attempt.role == "resumed" and attempt.committed for attempt in self.attempts)

    @property
    def answering(self) -> Attempt | None:
        """Whose request it was in the end: the attempt that answered, else the last one."""
        attempts = self.attempts
        if not attempts or attempts[-1].committed:
            return attempts[-1] if attempts else None
        return next((attempt for attempt in reversed(attempts) if attempt.committed), attempts[-1])

    @property
    def key(self) -> str:
        """Name of the client key."""
        return self.principal

    @property
    def estimated(self) -> bool:
        """Are the tokens our own count, since nobody else told any?"""
        return self.usage is not None and bool(self.usage.estimated)

    @property
    def error_class(self) -> str:
        """The kind of the failure that ended it (core.errors.KINDS), "" = none."""
        return self.error.kind if self.error is not None else ""

    @property
    def upstream_s(self) -> float:
        """Of its time, what was spent waiting for upstreams; the rest is ours and the client's."""
        attempts = self.attempts
        return attempts[0].upstream_s if len(attempts) == 1 else sum([attempt.upstream_s for attempt in attempts])
