"""What happens that an operator wants to be told of? Failed requests, budgets, providers that go down and come back."""
from collections.abc import Callable, Iterable
from typing import Any, Final

from gateway.core.bounded import LruMap
from gateway.core.call import Call
from gateway.core.keys import NANOS
from gateway.core.redact import mask
from gateway.pipeline.ground import Ground
from gateway.policy.budget import Budgets, Scope, periods
from gateway.routing.catalog import Target
from gateway.routing.health import Health

Tell = Callable[[str, dict[str, Any]], None]

FAILED: Final = frozenset({"failed", "broken"})
UNSPENT: Final = frozenset({"price_unknown", "request_over_budget"})      # refusals that say nothing of what is spent
SHARES: Final = (1.0, 0.8)                       # of a budget, the greater first
LEAST_S: Final = 10.0                            # a shorter rest of all of a provider's keys is no news
MAX_TOLD: Final = 10_000
MAX_NAME: Final = 200


class Notices:
    """Tells each thing once. ``secrets`` are masked in what is told."""

    def __init__(self, tell: Tell, budgets: Budgets, wall: Callable[[], float]) -> None:
        self.secrets: tuple[str, ...] = ()
        self._tell = tell
        self._budgets = budgets
        self._wall = wall
        self._reached: LruMap[tuple[str, str, float], bool] = LruMap(MAX_TOLD)
        self._down: dict[str, str] = {}          # provider -> why

    def failed(self, call: Call) -> None:
        """A request that no target answered, or whose answer broke."""
        error, request = call.error, call.request
        if call.refused:
            return
        self._tell("request.failed", {
            "id": call.id, "surface": call.surface, "model": request.model[:MAX_NAME] if request is not None else "",
            "routed": call.routed, "key": call.principal, "outcome": call.outcome, "status": call.status,
            "error": call.error_class, "message": mask(error.message, self.secrets)[:1_000] if error is not None else "",
            "attempts": [{"target": hop.label, "error": hop.error_class, "status": hop.status} for hop in call.attempts[:20]],
            "seconds": round(call.ended - call.started, 3)})

    def spent(self, call: Call) -> None:
        """Which budgets are nearly or wholly gone, now that this request is paid for."""
        for scope in call.hold.scopes:
            if scope.limited:
                self._look(scope)

    def refused(self, call: Call) -> None:
        """A request for which a budget had no room: told once an hour and key."""
        error = call.error
        if error is None or error.code in UNSPENT:
            return
        if self._first(call.principal, str(int(self._wall() // 3600)), 0.0):
            self._tell("budget.reached", {"scope": f"key {call.principal!r}", "refused": True,
                                          "message": mask(error.message, self.secrets)[:1_000]})

    def look(self, ground: Ground) -> None:
        """Who went down since the last look, and who came back?"""
        now, health = ground.clock.now(), ground.health
        for name, targets in _by_provider(ground.catalog.targets).items():
            why, before = _down(targets, health, now), self._down.get(name)
            if why and before is None:
                self._down[name] = why
                self._tell("provider.down", {"provider": name, "reason": why})
            elif before is not None and not why and _answers(targets, health, now):
                del self._down[name]
                self._tell("provider.recovered", {"provider": name, "was": before})
        for name in self._down.keys() - ground.catalog.providers.keys():
            del self._down[name]

    def _look(self, scope: Scope) -> None:
        spent = self._budgets.spent(scope.name)
        for limit, gone, unit, period in zip((scope.day, scope.month), spent, ("day", "month"), periods(self._wall()), strict=True):
            share = next((share for share in SHARES if limit and gone >= share * limit), 0.0)
            if not share or not self._first(scope.name, period, share):
                continue
            if share == SHARES[0]:
                self._first(scope.name, period, SHARES[1])       # who is told of all need not hear of most
            self._tell("budget.reached", {"scope": scope.title, "period": unit, "share": share, "limit_usd": limit / NANOS,
                                          "spent_usd": gone / NANOS, "refused": False})

    def _first(self, who: str, period: str, share: float) -> bool:
        key = (who, period, share)
        if key in self._reached:
            return False
        self._reached.put(key, True)
        return True


def _by_provider(targets: Iterable[Target]) -> dict[str, list[Target]]:
    found: dict[str, list[Target]] = {}
    for target in targets:
        found.setdefault(target.provider.id, []).append(target)
    return found


def _down(targets: list[Target], health: Health, now: float) -> str:
    """Why a provider cannot be asked for a while; "" = it can, or soon."""
    if health.breaker(targets[0], now) in ("open", "half-open"):
        return "breaker"
    soonest, kind = float("inf"), ""
    for candidate in (candidate for target in targets for candidate in target.candidates):
        found = health.blocked(candidate, now)
        if found is None:
            return ""
        if found[0] < soonest:
            soonest, kind = found
    return kind if soonest - now >= LEAST_S else ""


def _answers(targets: list[Target], health: Health, now: float) -> bool:
    """Is there somebody who may be asked now?"""
    return any(health.blocked(candidate, now) is None for target in targets for candidate in target.candidates)
