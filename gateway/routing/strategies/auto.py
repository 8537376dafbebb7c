"""``auto``: who is best for this request, all things considered? Score every account, choose the first, rank the rest.

The first is chosen by a router: ``rules`` (tiers of equals take turns, now and then somebody else is explored), ``cost``,
``latency``, ``sla`` or ``lkgp``. A provider that scores badly or whose breaker opened is not chosen first for a while and proves
itself before it is again (self-healing).
"""
from collections.abc import Callable, Sequence
from typing import Final

from gateway.routing.ask import POWERS, level
from gateway.routing.places import Leg
from gateway.routing.strategies.scoring import latencies, scores, sheet
from gateway.routing.strategies.view import Legs, View

TIES: Final = 1e-4
MIDDLE: Final = 0.30
CLEAR: Final = 0.10                           # a spread above it: the best tier serves
POOR: Final = 0.2
WELL: Final = 0.3
EXCLUDED_S: Final = 300.0
EXCLUDED_MAX_S: Final = 1800.0
PROOFS: Final = 3
INCIDENT: Final = 0.5                         # share of open breakers above which nothing is explored
ERROR_RATE: Final = 0.05
TOP: Final = 64                               # equals that take turns

_PREFERENCE: Final[dict[str, tuple[float, float, float]]] = {
    "quality-first": (.5, .3, .2), "ship-fast": (.3, .5, .2), "cost-saver": (.2, .3, .5), "coding": (.6, .25, .15),
    "": (.45, .35, .2),
}
Scored = tuple[float, int, Leg]               # score, place in the list, leg


def auto(legs: Legs, view: View) -> Legs:
    """Scored, the chosen one first."""
    given = sheet(legs, view)
    places = given.places
    if not places:
        return []
    found = scores(given, view)
    if view.settings.prefer_local:
        found = [score + leg.target.traits.local for score, leg in zip(found, places, strict=True)]
    order = sorted(range(len(places)), key=found.__getitem__, reverse=True)      # stable: equals stay as listed
    pool: list[Scored] = [(found[at], at, places[at]) for at in order]
    if view.telling:
        view.why.update((leg.key, f"score {score:.3f}") for score, _, leg in pool)
    chosen = ROUTERS.get(view.settings.router, rules)(pool, view)
    ordered = [leg for _, _, leg in pool if leg is not chosen]
    if not view.settings.mode_pack and not view.settings.weights and view.settings.router == "rules" and view.ask.text:
        ordered = by_power(ordered, view)
    return [chosen, *ordered, *given.rest]


def by_power(ordered: list[Leg], view: View) -> list[Leg]:
    """Behind the first: who is made for tasks as heavy as this one comes earlier."""
    wanted = level(view.ask)
    if wanted == "standard":
        return ordered
    power = POWERS[wanted]
    return sorted(ordered, key=lambda leg: round(misfit(leg, wanted, power, view.tokens)))


def misfit(leg: Leg, wanted: str, power: float, tokens: int) -> float:
    model, own = leg.target.model, leg.target.traits.power
    penalty = abs(own - power)
    if wanted in ("heavy", "critical") and model.reasoning is False:
        penalty += 120
    if model.context and tokens > 0.85 * model.context:
        penalty += 200
    if wanted == "light" and own > 95:
        penalty += 35
    if wanted == "heavy" and own < 65:
        penalty += 60
    if wanted == "critical" and own < 85:
        penalty += 100
    return penalty


# ---------------------------------------------------------------- routers
def rules(pool: Sequence[Scored], view: View) -> Leg:
    """Not whom self-healing excludes (unless that is everybody), within the budget, now and then somebody by lot."""
    excluded = healing(pool, view)
    rate, clear = view.settings.exploration, pool[0][0] - pool[-1][0] >= CLEAR
    explore = rate > 0 and len(pool) > 1 and view.dice.random() < rate and not incident(pool, view)
    if not explore and not view.settings.budget_cap_usd and (clear or rate <= 0):
        head = leading(pool, excluded, view)
        return head[0] if len(head) == 1 else head[view.memory.turn(f"auto:{view.scope}:0") % len(head)]
    able = [row for row in pool if view.selectable(row[2])] or list(pool)
    able = [row for row in able if row[2].target.provider.id not in excluded] or able
    able = within_budget(able, view)
    if explore and len(able) > 1:
        leg = able[min(int(view.dice.random() * len(able)), len(able) - 1)][2]
        view.why[leg.key] = "chosen by lot"
        return leg
    return rotated(able, view)


def leading(pool: Sequence[Scored], excluded: set[str], view: View) -> list[Leg]:
    """The best that may be asked, with its equals; looks no further down than it must."""
    resting, found, best = view.resting, list[Leg](), 0.0
    for score, _, leg in pool:
        if found and (score < best - TIES or len(found) >= TOP):
            break
        if leg.target.provider.id not in excluded and (view.selectable(leg) if resting else leg.candidates):
            best = score if not found else best
            found.append(leg)
    if found:
        return found
    return leading(pool, set(), view) if excluded else [pool[0][2]]


def rotated(pool: Sequence[Scored], view: View) -> Leg:
    """Equals take turns: the top tier when it is clearly ahead, else a tier drawn by preference."""
    best, worst = pool[0][0], pool[-1][0]
    if best - worst >= CLEAR or view.settings.exploration <= 0:
        top = [leg for score, _, leg in pool[:TOP] if score >= best - TIES]
        return top[0] if len(top) == 1 else top[view.memory.turn(f"auto:{view.scope}:0") % len(top)]
    band = best - MIDDLE * (best - worst)
    tiers: list[list[Leg]] = [[], [], []]
    for score, _, leg in pool:
        tiers[0 if score >= best - TIES else 1 if score >= band else 2].append(leg)
    point, shares = view.dice.random(), _PREFERENCE.get(view.settings.mode_pack, _PREFERENCE[""])
    filled = [(tier, share) for tier, share in zip((0, 1, 2), shares, strict=True) if tiers[tier]]
    point *= sum(share for _, share in filled)
    which = next((tier for at, (tier, _) in enumerate(filled) if point < sum(share for _, share in filled[:at + 1])), filled[-1][0])
    tier = tiers[which]
    if len(tier) == 1:
        return tier[0]
    return tier[view.memory.turn(f"auto:{view.scope}:{which}") % len(tier)]


def within_budget(pool: list[Scored], view: View) -> list[Scored]:
    """A thousand tokens must not cost more than the cap; if they always do, the cheapest serves."""
    cap = view.settings.budget_cap_usd
    if not cap:
        return pool
    kept = [row for row in pool if price(row[2]) / 1000 <= cap]
    return kept or [min(pool, key=lambda row: (price(row[2]), row[1]))]


def price(leg: Leg) -> float:
    return leg.target.traits.cost


def cost(pool: Sequence[Scored], view: View) -> Leg:
    return min(unopened(pool, view), key=lambda row: (price(row[2]), row[1]))[2]


def latency(pool: Sequence[Scored], view: View) -> Leg:
    """p95 and a second for every failure in all requests."""
    able = unopened(pool, view)
    p95s, _ = measured(able, view)
    return min(zip(p95s, able, strict=True), key=lambda row: (row[0] + errors(row[1][2], view) * 1000, row[1][1]))[1][2]


def sla(pool: Sequence[Scored], view: View) -> Leg:
    """Closest to the targets for latency, errors and cost; with ``sla_hard`` the least violation decides first."""
    settings, able = view.settings, unopened(pool, view)
    p95s, spreads = measured(able, view)
    widest = max(spreads) or 1.0
    best: tuple[float, float, int] | None = None
    chosen = able[0][2]
    for (_, at, leg), ms, spread in zip(able, p95s, spreads, strict=True):
        wanted = ((settings.sla_p95_ms, ms), (settings.sla_error_rate, errors(leg, view)),
                  (settings.sla_cost_usd or float("inf"), price(leg)))
        quick, sound, cheap = (min(1.0, limit / value) if value > 0 else 1.0 for limit, value in wanted)
        state = {"closed": 1.0, "degraded": 0.8, "half-open": 0.5, "open": 0.0}[view.breaker(leg)]
        score = .35 * quick + .35 * sound + .15 * state + .10 * cheap + .05 * (1 - spread / widest)
        over = sum(max(value - limit, 0) / (limit or 1.0) for limit, value in wanted) if settings.sla_hard else 0.0
        if best is None or (over, -score, at) < best:
            best, chosen = (over, -score, at), leg
    return chosen


def lkgp(pool: Sequence[Scored], view: View) -> Leg:
    """The provider that answered last, unless it is in trouble."""
    good = view.memory.good.get(view.scope)
    if good is not None:
        for _, _, leg in pool:
            if leg.target.provider.id == good[0] and view.breaker(leg) != "open" and view.selectable(leg):
                view.why[leg.key] = "its provider answered last"
                return leg
    return rules(pool, view)


ROUTERS: Final[dict[str, Callable[[Sequence[Scored], View], Leg]]] = {
    "rules": rules, "cost": cost, "eco": cost, "latency": latency, "fast": latency, "sla": sla, "sla-aware": sla, "lkgp": lkgp,
}


# ---------------------------------------------------------------- self-healing
def healing(pool: Sequence[Scored], view: View) -> set[str]:
    """Providers that are not chosen first now. A bad score excludes, longer each time; a good one after that readmits."""
    now, memory, found = view.now, view.memory, set[str]()
    best: dict[str, tuple[float, Leg]] = {}
    if not memory.exclusions and not view.health.breakers and pool[-1][0] >= POOR:
        return found
    for score, _, leg in pool:
        best.setdefault(leg.target.provider.id, (score, leg))
    for id, (score, leg) in best.items():
        key = (view.scope, id)                # by name: a score says nothing outside of the weights that it was made with
        held = memory.exclusions.get(key)
        state = view.breaker(leg)
        if state == "open" or score < POOR:
            if held is None or (now >= held[0] and state != "half-open"):
                span = EXCLUDED_S if held is None else min(held[1] * 2, EXCLUDED_MAX_S)
                held = (now + span, span, 0)
                memory.exclusions.put(key, held)
            found.add(id)
        elif held is not None and state != "half-open" and (now < held[0] or score < WELL):
            found.add(id)
    return found


def proved(provider: str, ok: bool, view: View) -> None:
    """An excluded provider was asked all the same: three good answers clear it, a bad one doubles its time."""
    key = (view.scope, provider)
    held = view.memory.exclusions.get(key)
    if held is None:
        return
    until, span, good = held
    if not ok:
        span = min(span * 2, EXCLUDED_MAX_S)
        view.memory.exclusions.put(key, (view.now + span, span, 0))
    elif good + 1 >= PROOFS:
        view.memory.exclusions.pop(key, None)
    else:
        view.memory.exclusions.put(key, (until, span, good + 1))


def incident(pool: Sequence[Scored], view: View) -> bool:
    """More than half of the breakers are open, or the house is degraded: no time for experiments."""
    health = view.health
    if not health.breakers and not view.resting:
        return health.degraded(1, 1, view.now)
    providers = {leg.target.provider.id: leg for _, _, leg in pool}
    opened = sum(1 for leg in providers.values() if view.breaker(leg) == "open")
    usable = {leg.target.provider.id for _, _, leg in pool if view.selectable(leg)} if view.resting else providers.keys()
    return opened > INCIDENT * len(providers) or health.degraded(len(usable), len(providers), view.now)


def measured(pool: Sequence[Scored], view: View) -> tuple[list[float], list[float]]:
    legs = [leg for _, _, leg in pool]
    return latencies([leg.head for leg in legs], [leg.target.traits for leg in legs], view.health.stats)


def unopened(pool: Sequence[Scored], view: View) -> list[Scored]:
    return [row for row in pool if view.breaker(row[2]) != "open" and view.selectable(row[2])] or list(pool)


def errors(leg: Leg, view: View) -> float:
    success = view.health.stats.of(leg, view.now).success
    return ERROR_RATE if success is None else 1 - success
