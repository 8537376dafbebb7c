"""Who is asked next in this request? One pass after the other over its targets, leaving out who cannot, must not or rests.

``next`` looks from the top each time: the walk has few steps and a cooldown may end while an attempt runs. Reasons are not
collected on the way; ``rows`` finds them again by the same gates when somebody asks (exhaustion, explain).
"""
from collections.abc import Iterator
from typing import Final

from gateway.core.errors import GatewayError
from gateway.core.request import Request
from gateway.routing import exhaust
from gateway.routing.catalog import Candidate, Key, Target
from gateway.routing.health import Health
from gateway.routing.order import STRATEGIES
from gateway.routing.outcomes import OUTCOMES
from gateway.routing.resolve import Resolution
from gateway.routing.rows import Reason, Row, words
from gateway.tokens.estimate import reserve

UNKNOWN_MODELS: Final = 3        # distinct models that a provider does not know: it is the provider (wrong address, wrong plan)
CHOICES_WIRES: Final = frozenset({"openai-chat"})      # formats that can ask for n > 1, besides the one that did


class Walk:
    """The walk of one request. Nothing here is shared but ``health``."""

    __slots__ = ("_busy", "_health", "_images", "_many", "_skipped", "_tools", "_turns", "_unknown", "requested", "targets",
                 "tokens")

    def __init__(self, resolution: Resolution, request: Request, health: Health, input_tokens: int, now: float) -> None:
        choice = request.tool_choice
        self.requested = resolution.requested
        self.targets = STRATEGIES[resolution.strategy](resolution.targets, health)
        self.tokens = input_tokens + reserve(request.max_tokens)
        self._tools = bool(request.tools) and (choice is None or choice.mode != "none")
        self._images = request.images > 0
        self._many = CHOICES_WIRES | {request.wire} if request.n > 1 else None
        self._health = health
        self._skipped: set[Key] | None = None
        self._busy: dict[Key, float] = {}
        self._turns: dict[Target, int] = {}
        self._unknown: set[Key] = set()

    def next(self, now: float) -> Candidate | None:
        """The next candidate to ask, None when nobody is left."""
        skipped, cooldown = self._skipped, self._health.cooldown
        for target in self.targets:
            if self.gate(target):
                continue
            candidates = target.candidates
            if len(candidates) > 1:
                candidates = self._rotated(target, take=True)
            for candidate in candidates:
                if (skipped is None or skipped.isdisjoint(candidate.keys)) and cooldown(candidate, now) is None:
                    return candidate
        return None

    def failed(self, candidate: Candidate, error: GatewayError) -> None:
        """Leave out for the rest of this request whatever this failure speaks against."""
        skipped = self._skipped
        if skipped is None:
            skipped = self._skipped = set()
        skipped.add(candidate.key)
        target, skip = candidate.target, OUTCOMES[error.kind].skip
        if skip == "account":
            skipped.add(candidate.account_key)
        elif skip == "model":
            skipped.add(target.key)
        elif skip == "provider":
            skipped.add(target.provider_key)
        if error.kind == "model_not_found":
            self._unknown.add(target.key)
            if sum(1 for key in self._unknown if key[0] == target.provider.id) >= UNKNOWN_MODELS:
                skipped.add(target.provider_key)

    def busy(self, candidate: Candidate, until: float) -> None:
        """The candidate's own limits (policy) have no room before ``until``: nothing was tried, so nothing is to blame."""
        if self._skipped is None:
            self._skipped = set()
        self._skipped.add(candidate.key)
        self._busy[candidate.key] = until

    def gate(self, target: Target) -> Reason:
        """Why this request does not fit the target; unknown abilities fit."""
        model = target.model
        if self._images and model.vision is False:
            return "vision"
        if self._tools and model.tools is False:
            return "tools"
        if self._many is not None and target.provider.wire not in self._many:
            return "n"
        if self.tokens > target.room:
            return "too_large"
        return ""

    def rows(self, now: float) -> Iterator[Row]:
        """Every candidate in the order of this walk, with the reason why it would not be asked now."""
        for target in self.targets:
            reason = self.gate(target) or ("" if target.candidates else "no_account")
            if reason:
                yield Row(target, None, reason)
                continue
            for candidate in self._rotated(target, take=False):
                yield self._row(target, candidate, now)

    def soonest_retry(self, now: float) -> float | None:
        """Seconds until somebody who rests now may be asked again; None when nobody rests."""
        ends = [row.until for row in self.rows(now) if row.until > now]
        return min(ends) - now if ends else None

    def exhaustion(self, now: float, wall: float) -> GatewayError:
        """The honest answer when nobody could be asked at all."""
        return exhaust.nobody(list(self.rows(now)), self.requested, now, wall)

    def diagnostics(self, now: float) -> list[tuple[str, str, str]]:
        """(label, reason, words) of everybody who would not be asked now."""
        return [(row.target.label, row.reason, words(row, now)) for row in self.rows(now) if row.reason]

    def _row(self, target: Target, candidate: Candidate, now: float) -> Row:
        resting = self._health.cooldown(candidate, now)
        if candidate.key in self._busy:
            return Row(target, candidate, "limit", "limited", self._busy[candidate.key])
        if resting is not None:
            return Row(target, candidate, "cooldown", resting.kind, resting.until)
        if self._skipped and not self._skipped.isdisjoint(candidate.keys):
            return Row(target, candidate, "failed")
        return Row(target, candidate, "")

    def _rotated(self, target: Target, take: bool) -> tuple[Candidate, ...]:
        """The accounts of a target, beginning with the one whose turn it is in this request."""
        start = self._turns.get(target)
        if start is None:
            if not take:
                start = self._health.peek_turn(target)
            else:
                start = self._turns[target] = self._health.turn(target)
        candidates = target.candidates
        return candidates[start:] + candidates[:start] if start else candidates
