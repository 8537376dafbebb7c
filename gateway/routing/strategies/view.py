"""What does a strategy look at? One instant of the house: who rests, what was measured, chance, and what the request is about."""
from collections.abc import Sequence

from gateway.core.ports import Dice
from gateway.routing.ask import NOTHING, Ask
from gateway.routing.breaker import State
from gateway.routing.combos import DEFAULTS, Settings
from gateway.routing.health import Health
from gateway.routing.memory import Memory
from gateway.routing.places import Candidate, Leg


class View:
    """Handed to every strategy; what a strategy changes is ``memory`` alone."""

    __slots__ = ("_breakers", "ask", "dice", "health", "memory", "now", "resting", "scope", "settings", "telling",
                 "tokens", "why")

    def __init__(self, health: Health, now: float, scope: str, settings: Settings = DEFAULTS, ask: Ask = NOTHING,
                 tokens: int = 0, telling: bool = False) -> None:
        self.health = health
        self.memory: Memory = health.memory
        self.dice: Dice = health.dice or STEADY
        self.now = now
        self.scope = scope
        self.settings = settings
        self.ask = ask
        self.tokens = tokens
        self.resting = health.all_resting(now)
        self.telling = telling                # somebody wants to know why: reasons are written down
        self.why: dict[str, str] = {}         # place -> words
        self._breakers: dict[str, State] = {}

    def breaker(self, leg: Leg) -> State:
        """Of its provider; looked up once a provider."""
        health = self.health
        if not health.breakers:
            return "closed"
        id = leg.target.provider.id
        found = self._breakers.get(id)
        if found is None:
            found = self._breakers[id] = health.breaker(leg.target, self.now)
        return found

    def free(self, candidate: Candidate) -> bool:
        return self.resting.isdisjoint(candidate.keys)

    def selectable(self, leg: Leg) -> bool:
        """May any of its accounts be asked now?"""
        resting = self.resting
        if not resting:
            return bool(leg.candidates)
        for candidate in leg.candidates:
            if resting.isdisjoint(candidate.keys):
                return True
        return False


class Steady:
    """Chance that always says the same: what orders use where nobody handed in dice."""

    def random(self) -> float:
        return 0.5

    def randrange(self, stop: int, /) -> int:
        return 0

    def shuffle(self, items: list[object], /) -> None:
        """As it is."""

    def betavariate(self, alpha: float, beta: float, /) -> float:
        return alpha / (alpha + beta)


STEADY = Steady()
Legs = Sequence[Leg]


def apart(legs: Legs) -> list[Leg]:
    """One place an account."""
    return [each for leg in legs for each in (leg.singles or leg.each)]


def fronted(legs: Legs, first: Leg) -> list[Leg]:
    """``first`` leads, the others keep their order."""
    return [first, *(leg for leg in legs if leg is not first)]


def best_first(places: list[Leg], values: list[float]) -> list[Leg]:
    """By one value a place, the greatest first; equals keep their order."""
    return [places[at] for at in sorted(range(len(places)), key=values.__getitem__, reverse=True)]
