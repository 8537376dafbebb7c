"""What does a request stand on? Everything compiled from one configuration, and the state that outlives it.

A request takes one ``Ground`` when it arrives and keeps it to its end; a reload makes a new one and swaps the reference.
``Lane`` is what an attempt needs of a candidate, computed once: address, headers, timeouts, facts for the wire.
"""
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from gateway.cache.replays import Replays
from gateway.compress.tally import Tally
from gateway.config.snapshot import Snapshot
from gateway.core.call import Call
from gateway.core.clock import Clock
from gateway.core.errors import GatewayError
from gateway.core.ports import Journal, Responses, Store
from gateway.core.redact import worth_hiding
from gateway.core.request import Request
from gateway.memory.needs import Needs, needs_of
from gateway.memory.traces import Traces
from gateway.pipeline.combobook import ComboBook
from gateway.pipeline.epoch import epoch
from gateway.pipeline.extras import Extras
from gateway.pipeline.guards import compiled
from gateway.policy.budget import Budgets
from gateway.policy.keybook import KeyBook
from gateway.policy.keys import KeyRing
from gateway.policy.limits import Limits
from gateway.providers.auth import credentials, query_credentials
from gateway.routing import wildcards
from gateway.routing.ask import Intents
from gateway.routing.catalog import Candidate, Catalog
from gateway.routing.health import Health
from gateway.tokens.calibrate import Calibration
from gateway.upstream.deadline import Deadline
from gateway.upstream.guard import base_headers, outgoing
from gateway.upstream.reach import Fetcher
from gateway.upstream.signed import signed
from gateway.upstream.tokens import Tokens
from gateway.upstream.transport import Timeouts, Transport
from gateway.wire import WIRES
from gateway.wire.base import Outbound, Wire
from gateway.wire.change import Change

MAX_LANES = 4096


class Lane(msgspec.Struct, kw_only=True, frozen=True):
    """One candidate, compiled."""
    candidate: Candidate
    wire: Wire
    transport: Transport
    base_url: str
    query: str                                   # what the provider wants there, and credentials for auth = "query"
    headers_account: Mapping[str, str]           # what the account always sends; the next two are complete
    headers_stream: Mapping[str, str]
    headers_whole: Mapping[str, str]
    to_stream: Outbound
    to_whole: Outbound
    timeouts: Timeouts
    secrets: tuple[str, ...]                     # what it is sent and may repeat: the account's key first
    proxy: str
    needs: Needs | None                          # what the model wants back of what it said
    changes: tuple[Change, ...]                  # what the operator's rules do to bodies for it

    def __repr__(self) -> str:
        return f"Lane({self.candidate!r})"

    def url(self, request: Request, to: Outbound) -> str:
        path = self.wire.upstream_path(request, to)
        if not self.query:
            return self.base_url + path
        return f"{self.base_url}{path}{'&' if '?' in path else '?'}{self.query}"


class Ground:
    """Built by server.compose; immutable but for the lanes, which are filled on first use."""

    def __init__(self, snapshot: Snapshot, *, catalog: Catalog, keys: KeyRing, health: Health, limits: Limits,
                 transports: Mapping[str, Transport], journal: Journal, clock: Clock, inflight: "Inflight",
                 store: Store, traces: Traces, tokens: Tokens, budgets: Budgets, keybook: KeyBook, combobook: ComboBook,
                 fetcher: Fetcher, calibration: Calibration | None = None, extras: Extras | None = None,
                 replays: Replays | None = None, tally: Tally | None = None, responses: Responses | None = None) -> None:
        self.snapshot = snapshot
        self.catalog = catalog
        self.keys = keys
        self.health = health
        self.limits = limits
        self.transports = transports
        self.journal = journal
        self.clock = clock
        self.inflight = inflight
        self.store = store
        self.responses = responses or store.responses    # its own, or what all processes share
        self.traces = traces
        self.tokens = tokens
        self.budgets = budgets
        self.keybook = keybook
        self.combobook = combobook
        self.fetcher = fetcher
        self.calibration = calibration or Calibration()
        self.extras = extras or Extras()
        self.replays = replays or Replays()
        self.tally = tally or Tally()
        self.epoch = epoch(snapshot)
        self.guards = compiled(snapshot.guardrails)     # None = all off
        # Quotas are read off every answer where there is anybody to choose between; else it would be for nothing.
        self.learns = sum(len(target.candidates) for target in catalog.targets) > 1
        otel = snapshot.otel
        self.traced = bool(otel.endpoint and otel.traces) or otel.propagate
        self.resumes = snapshot.stream.resume == "continue"
        self.chores = wildcards.ranked(snapshot.routing.background_models.items())
        words = snapshot.routing.intents
        self.intents = Intents.of({name: getattr(words, name) for name in ("code", "math", "reasoning", "creative")})
        self._lanes: dict[Any, Lane] = {}

    def lane(self, candidate: Candidate) -> Lane:
        lane = self._lanes.get(candidate.key)
        if lane is None:
            if len(self._lanes) >= MAX_LANES:
                self._lanes.clear()
            lane = self._lanes[candidate.key] = self._compile(candidate)
        return lane

    def _compile(self, candidate: Candidate) -> Lane:
        provider, model, account = candidate.target.provider, candidate.target.model, candidate.account
        headers = base_headers(provider.headers, credentials(provider, account))
        wire = WIRES[provider.wire]

        def outbound(stream: bool) -> Outbound:
            return Outbound(model=provider.upstream_name(model), provider=provider.id, stream=stream, max_output=model.max_output,
                            drop_params=provider.drop_params | model.refuses, rename_params=provider.rename_params,
                            flags=provider.flags | model.flags | ({"completions"} if model.completions else set()))

        transport = self.transports["demo" if "demo" in provider.flags else provider.transport]
        return Lane(candidate=candidate, wire=wire,
                    transport=signed(transport, provider, account, self.tokens, self.clock),
                    base_url=provider.base_url.replace("{model}", quote(provider.upstream_name(model), safe="")),
                    query="&".join(filter(None, (provider.query, query_credentials(provider, account)))),
                    headers_account=headers, headers_stream=outgoing(headers, {}, stream=True),
                    headers_whole=outgoing(headers, {}, stream=False),
                    to_stream=outbound(True), to_whole=outbound(False), timeouts=provider.timeouts,
                    secrets=tuple(filter(worth_hiding, (account.key.reveal(), *provider.hidden))),
                    proxy=account.proxy or provider.proxy, needs=needs_of(wire.name, model.id),
                    changes=tuple(rule.change for rule in self.snapshot.rules if rule.fits(provider, model)))


class Inflight:
    """Which requests are under way, which attempts, and whether new ones are still welcome."""

    __slots__ = ("count", "calls", "attempts", "draining", "closed", "lag_s", "on_empty")

    def __init__(self) -> None:
        self.count = 0
        self.calls: dict[int, Call] = {}             # by identity: the caller chooses the ids
        self.attempts: set[Deadline] = set()
        self.draining = False                        # on the way out: what comes by a kept connection is still served
        self.closed = False                          # nothing is served any more
        self.lag_s = 0.0                             # how late the event loop is (observe.lag)
        self.on_empty: Callable[[], None] | None = None

    def give_up(self, why: GatewayError) -> None:
        """End every attempt; its client is told why in its own format."""
        for deadline in list(self.attempts):
            deadline.give_up(why)

    def enter(self, call: Call) -> None:
        self.count += 1
        self.calls[id(call)] = call

    def leave(self, call: Call) -> None:
        self.count -= 1
        del self.calls[id(call)]
        if self.count == 0 and self.on_empty is not None:
            self.on_empty()
