"""Who is asked next in this request? One pass after the other over its places, leaving out who cannot, must not or rests.

``next`` looks from the top each time: the walk has few steps and a cooldown may end while an attempt runs. Reasons are not
collected on the way; ``rows`` finds them again by the same gates when somebody asks (exhaustion, explain).
"""
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from gateway.core.errors import GatewayError
from gateway.core.request import Request
from gateway.routing import exhaust, outcome
from gateway.routing.ask import NOTHING, Ask
from gateway.routing.catalog import Candidate, Key, Leg, Target
from gateway.routing.combos import Settings
from gateway.routing.health import Health
from gateway.routing.order import ordered, unfit
from gateway.routing.outcomes import OUTCOMES
from gateway.routing.resolve import Resolution
from gateway.routing.rows import Reason, Row
from gateway.routing.strategies import AS_LISTED, STRATEGIES
from gateway.routing.strategies.view import View
from gateway.tokens.estimate import reserve

UNKNOWN_MODELS: Final = 3        # distinct models that a provider does not know: it is the provider (wrong address, wrong plan)
CHOICES_WIRES: Final = frozenset({"openai-chat"})      # formats that can ask for n > 1, besides the one that did
AGAIN: Final = frozenset({"timeout", "overloaded", "server_error", "transport", "rate_limited"})
SPENT: Final = frozenset({"out_of_credits", "suspended", "daily_quota_exhausted"})
PASSING: Final = frozenset({"transient", "quota"})     # rules of failures that pass by themselves

_BUSY: Final[dict[Key, float]] = {}
_UNKNOWN: Final[frozenset[Key]] = frozenset()
_RETRIED: Final[dict[Key, int]] = {}
OPENED: Final[dict[str, tuple[View, Leg]]] = {}        # place -> (view of the inner combo, its place as a whole)


class Walk:
    """The walk of one request. Nothing here is shared but ``health``."""

    __slots__ = ("_again", "_beside", "_busy", "_excused", "_failures", "_health", "_images", "_learned", "_leg", "_many", "_retried",
                 "_skipped", "_spent", "_tools", "_turns", "_unknown", "legs", "opened", "requested", "resolution", "tokens", "view")

    def __init__(self, resolution: Resolution, request: Request, health: Health, input_tokens: int, now: float,
                 ask: Ask = NOTHING, sticky_ttl_s: float = 0.0, telling: bool = False) -> None:
        choice = request.tool_choice
        self.requested = resolution.requested
        self.tokens = input_tokens + reserve(request.max_tokens)
        self.view: View | None = None
        if ask is NOTHING and resolution.strategy in AS_LISTED and resolution.settings.sticky_limit == 1 \
                and not unfit(resolution, request):
            self.legs: Sequence[Leg] = resolution.legs
        else:
            self.view = View(health, now, resolution.scope, resolution.settings, ask, self.tokens, telling)
            self.legs = ordered(resolution, request, self.view, sticky_ttl_s)
        self._tools = bool(request.tools) and (choice is None or choice.mode != "none")
        self._images = request.images > 0
        self._many = CHOICES_WIRES | {request.wire} if request.n > 1 else None
        self._health = health
        learned = health.learned
        self._learned = learned if learned.known else None
        self.resolution = resolution
        self._skipped: set[Key] | None = None
        self._turns: dict[Leg, int] = {}
        self._leg: Leg | None = None
        self._again: Candidate | None = None
        self._spent = False
        self._beside: Target | None = None
        self._failures: tuple[tuple[Candidate, GatewayError], ...] = ()
        self._excused: frozenset[Key] = _UNKNOWN
        # Shared and empty until something is put in: most walks end with their first candidate.
        self._busy, self._unknown, self._retried, self.opened = _BUSY, _UNKNOWN, _RETRIED, OPENED

    @property
    def targets(self) -> tuple[Target, ...]:
        """Whom the walk goes through, in its order."""
        return tuple(dict.fromkeys(leg.target for leg in self.legs))

    def next(self, now: float) -> Candidate | None:
        """The next candidate to ask, None when nobody is left."""
        if self._again is not None:
            candidate, self._again = self._again, None
            return candidate
        health, skipped = self._health, self._skipped
        cooldown, trials = health.cooldown, health.trials
        waiting: tuple[Leg, Candidate] | None = None
        for leg in self.legs:
            if leg.combo is not None:
                self._open(leg, now)
                return self.next(now)
            if self.gate(leg.target, now):
                continue
            candidates = leg.candidates
            if len(candidates) > 1:
                candidates = self._rotated(leg, take=True)
            for candidate in candidates:
                if (skipped is None or skipped.isdisjoint(candidate.keys)) and cooldown(candidate, now) is None:
                    if trials:
                        trial = health.trial(candidate, now)
                        if trial == "hard" or trial == "soft":
                            waiting = waiting or ((leg, candidate) if trial == "soft" else None)
                            continue
                        health.asked(candidate, now)
                    self._leg = leg
                    return candidate
        return self._last(waiting, now)

    def _last(self, waiting: tuple[Leg, Candidate] | None, now: float) -> Candidate | None:
        """Nobody is free: who is being tried by somebody else, a spare for those out of credits, who may well be back."""
        if self._beside is not None:
            return None
        if waiting is not None:
            self._leg = waiting[0]
            return waiting[1]
        if self._spent and self.resolution.spare and not self._tools:
            self._spent = False
            self.legs = [*self.legs, *(target.leg for target in self.resolution.spare)]
            return self.next(now)
        back = self._excusable if self._excused else self._health.probing if self._skipped is None else None
        if back is None:
            return None
        for leg in self.legs:
            if not self.gate(leg.target, now):
                for candidate in leg.candidates:
                    if back(candidate, now):
                        self._health.asked(candidate, now)
                        self._leg = leg
                        return candidate
        if self._learned is not None:
            # What refusals taught puts others first; alone it refuses nobody: the upstream may take more by now.
            self._learned = None
            return self.next(now)
        return None

    def failed(self, candidate: Candidate, error: GatewayError) -> None:
        """Leave out for the rest of this request whatever this failure speaks against."""
        retries = self.settings(candidate).max_retries
        if retries and error.kind in AGAIN and error.retry_after_s is None:
            done = self._retried.get(candidate.key, 0)
            if done < retries:
                self._retried = {**self._retried, candidate.key: done + 1}
                self._again = candidate
                return
        self._failures = (*self._failures, (candidate, error))
        self._skip(candidate, error)
        target, skipped = candidate.target, self._skipped
        assert skipped is not None
        self._spent = self._spent or error.kind in SPENT
        if error.kind == "model_not_found":
            self._unknown = self._unknown | {target.key}
            if sum(1 for key in self._unknown if key[0] == target.provider.id) >= UNKNOWN_MODELS:
                skipped.add(target.provider_key)
            elif self.resolution.kind in ("combo", "family"):
                self.legs = outcome.with_siblings(self.legs, target)
        if self.view is not None:
            outcome.failed(self, candidate)

    def _skip(self, candidate: Candidate, error: GatewayError) -> None:
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

    @property
    def passing(self) -> bool:
        """Did anybody fail of something that may be over in a moment, and not say when?"""
        return any(passes(error) for _, error in self._failures)

    def renew(self, excuse: bool = False) -> None:
        """Another pass: who failed of what passes, or had no room, may be asked again, once he rests no more. ``excuse``: also
        while he rests for what we only guessed."""
        failures = self._failures
        self._skipped, self._busy, self._retried = None, _BUSY, _RETRIED
        self._excused = frozenset(c.key for c, error in failures if passes(error)) if excuse else _UNKNOWN
        self._failures = tuple(each for each in failures if OUTCOMES[each[1].kind].rule not in PASSING)
        for candidate, error in self._failures:
            self._skip(candidate, error)

    def _excusable(self, candidate: Candidate, now: float) -> bool:
        if candidate.key not in self._excused or (self._skipped is not None and not self._skipped.isdisjoint(candidate.keys)):
            return False
        found = self._health.cooldown(candidate, now)
        return found is None or found.source == "heuristic"

    def beside(self, target: Target | None) -> None:
        """For a race: until it is None again, ``next`` gives only somebody of another target who is free without a question."""
        if target is not None:
            self._skipped = {*(self._skipped or ()), target.key}
        elif self._skipped is not None and self._beside is not None:
            self._skipped.discard(self._beside.key)
            self._skipped = self._skipped or None
        self._beside = target

    def at(self, leg: Leg | None) -> None:
        """What is told next concerns the candidate of this place."""
        self._leg = leg

    def succeeded(self, candidate: Candidate, now: float) -> None:
        """The turn was whole: what strategies and sessions remember of it."""
        if self.view is not None:
            outcome.succeeded(self, candidate, now)

    def busy(self, candidate: Candidate, until: float) -> None:
        """The candidate's own limits (policy) have no room before ``until``: nothing was tried, so nothing is to blame."""
        if self._skipped is None:
            self._skipped = set()
        self._skipped.add(candidate.key)
        self._busy = {**self._busy, candidate.key: until}
        self._health.released(candidate)

    def crowded(self) -> list[Candidate]:
        """Whose limits had no room, in the order in which they were to be asked."""
        return [c for leg in self.legs for c in leg.candidates if c.key in self._busy] if self._busy else []

    def forgive(self, candidate: Candidate, now: float) -> None:
        """It has room again and is asked next."""
        if self._skipped is not None:
            self._skipped.discard(candidate.key)
        self._busy = {key: until for key, until in self._busy.items() if key != candidate.key}
        self._leg = next(leg for leg in self.legs if candidate in leg.candidates)
        self._health.asked(candidate, now)

    def gate(self, target: Target, now: float = 0.0) -> Reason:
        """Why this request does not fit the target; unknown abilities fit."""
        model = target.model
        if self._images and model.vision is False:
            return "vision"
        if self._tools and model.tools is False:
            return "tools"
        if self._many is not None and target.provider.wire not in self._many:
            return "n"
        if self.tokens > target.room or (self._learned is not None and self.tokens > self._learned.room(target, now)):
            return "too_large"
        return ""

    def rows(self, now: float, opening: bool = True) -> Iterator[Row]:
        """Every candidate in the order of this walk, with the reason why it would not be asked now. Not ``opening``: a combo
        whose turn has not come is one row."""
        while opening and (unit := next((leg for leg in self.legs if leg.combo is not None), None)) is not None:
            self._open(unit, now)
        seen: set[Key] = set()
        for leg in self.legs:
            target = leg.target
            if leg.combo is not None:
                yield Row(target, None, "", leg=leg)
                continue
            reason = self.gate(target, now) or ("" if leg.candidates or target.candidates else "no_account")
            if reason:
                if target.key not in seen:
                    yield Row(target, None, reason, leg=leg)
                seen.add(target.key)
                continue
            for candidate in self._rotated(leg, take=False):
                if candidate.key not in seen:
                    seen.add(candidate.key)
                    yield self._row(leg, candidate, now)

    def soonest_retry(self, now: float) -> float | None:
        """Seconds until somebody who rests now may be asked again; None when nobody rests."""
        ends = [row.until for row in self.rows(now) if row.until > now]
        return min(ends) - now if ends else None

    def exhaustion(self, now: float, wall: float) -> GatewayError:
        """The honest answer when nobody could be asked at all."""
        return exhaust.nobody(list(self.rows(now)), self.requested, now, wall)

    def settings(self, candidate: Candidate) -> Settings:
        """What counts at this candidate: its place's own settings over the combo's over its provider's."""
        combo, leg = self.resolution.combo, self._leg
        if combo is None:
            return self.resolution.settings
        found = combo.overrides.get(candidate.target.provider.id, combo.settings)
        return msgspec.structs.replace(found, **leg.own) if leg is not None and leg.own and candidate in leg.candidates else found

    @property
    def rank(self) -> int:
        """The place of the candidate that ``next`` gave last, in the order of now, from 1."""
        legs = self.legs
        if legs and legs[0] is self._leg:
            return 1
        return next((i for i, leg in enumerate(legs, 1) if leg is self._leg), 0)

    @property
    def current(self) -> Leg | None:
        """The place of the candidate that ``next`` gave last."""
        return self._leg

    def _row(self, leg: Leg, candidate: Candidate, now: float) -> Row:
        target, resting = leg.target, self._health.cooldown(candidate, now)
        if candidate.key in self._busy:
            return Row(target, candidate, "limit", "limited", self._busy[candidate.key], leg)
        if resting is not None:
            return Row(target, candidate, "cooldown", resting.kind, resting.until, leg)
        if self._skipped and not self._skipped.isdisjoint(candidate.keys):
            return Row(target, candidate, "failed", leg=leg)
        if self._health.trials and self._health.trial(candidate, now) == "hard":
            return Row(target, candidate, "trial", "overloaded", self._health.trial_end(candidate), leg)
        return Row(target, candidate, "", leg=leg)

    def _open(self, unit: Leg, now: float) -> None:
        """The turn of an inner combo has come: its places, by its own strategy, take its place."""
        combo = unit.combo
        assert combo is not None
        outer = self.view
        view = View(self._health, now, combo.name, combo.settings, outer.ask if outer is not None else NOTHING, self.tokens,
                    outer is None or outer.telling)
        inner = STRATEGIES[combo.strategy](combo.items, view)
        self.opened = {**self.opened, **{leg.place: (view, unit) for leg in inner}}
        if outer is not None:
            outer.why.update(view.why)
        else:
            self.view = View(self._health, now, self.resolution.scope, self.resolution.settings, tokens=self.tokens)
            self.view.why.update(view.why)
        at = next(i for i, leg in enumerate(self.legs) if leg is unit)
        self.legs = [*self.legs[:at], *inner, *self.legs[at + 1:]]

    def _rotated(self, leg: Leg, take: bool) -> tuple[Candidate, ...]:
        """The accounts of a place, beginning with the one whose turn it is in this request."""
        candidates = leg.candidates
        if len(candidates) < 2:
            return candidates
        start = self._turns.get(leg)
        if start is None:
            if not take:
                start = self._health.peek_turn(leg.target)
            else:
                start = self._turns[leg] = self._health.turn(leg.target)
        start %= len(candidates)
        turned = candidates[start:] + candidates[:start] if start else candidates
        return tuple(sorted(turned, key=lambda c: c.account.priority)) if leg.target.ranked else turned


def passes(error: GatewayError) -> bool:
    """May it be over in a moment, without anybody having said when?"""
    return OUTCOMES[error.kind].rule in PASSING and error.retry_after_s is None
