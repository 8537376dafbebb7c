"""What is one try, whatever is asked? The facts that the loop of attempts needs; what is tried adds its own."""
import logging
from math import inf
from typing import TYPE_CHECKING

from gateway.core.call import Attempt, Call
from gateway.core.events import Usage
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground, Lane
from gateway.pipeline.prepare import Plan
from gateway.policy.limits import Reservation
from gateway.routing.catalog import Leg
from gateway.routing.drift import drifted
from gateway.routing.trail import encode
from gateway.upstream.deadline import Deadline

if TYPE_CHECKING:
    from gateway.pipeline.hedge import Race

log = logging.getLogger("gateway.drift")
NOTHING = Reservation(None)


class Hop:
    """One attempt with everything it works on. ``commit_by``: when it is given up if nothing has left (hedge deadline)."""

    __slots__ = ("call", "attempt", "lane", "plan", "client", "ground", "commit_by", "deadline", "overdue",
                 "own_time", "reservation", "leg", "race")

    def __init__(self, call: Call, attempt: Attempt, lane: Lane, plan: Plan, client: Client, ground: Ground) -> None:
        self.call = call
        self.attempt = attempt
        self.lane = lane
        self.plan = plan
        self.client = client
        self.ground = ground
        self.commit_by = inf
        self.deadline: Deadline | None = None
        self.own_time = False                        # commit_by is the target's own, so missing it is its fault
        self.overdue = False                         # ended by our own budget, not by a limit of its own
        self.reservation = NOTHING                   # what it holds of its account's limits
        self.leg: Leg | None = None                  # its place in the walk
        self.race: Race | None = None                # who is asked at the same time

    def asks(self) -> None:
        """From here on it waits for the upstream."""
        self.attempt.waiting_from = self.ground.clock.now()

    def heard(self) -> float:
        """What it waited for is there; returns the time."""
        attempt, now = self.attempt, self.ground.clock.now()
        attempt.upstream_s += now - attempt.waiting_from
        attempt.waiting_from = 0.0
        return now

    def elapsed(self) -> float:
        """Seconds since the request came."""
        return self.ground.clock.now() - self.call.started

    def served(self, model: str) -> None:
        """The upstream says which model answered. Another one than it was asked for is noted, and told the operator once."""
        attempt, lane = self.attempt, self.lane
        attempt.upstream_model = model
        if model and drifted(lane.to_whole.model, model) and drifted(attempt.model, model):
            attempt.drift = True
            if self.ground.health.stats.drifted(attempt.label, model):
                log.warning("%s serves another model: %s", attempt.label, encode(model))

    @property
    def first_token_at(self) -> float | None:
        """When it began to answer."""
        return None

    @property
    def silent(self) -> bool:
        """Has it said nothing yet that a client would want to read?"""
        return True

    @property
    def said(self) -> int:
        """Characters of an answer that was refused: the longest is delivered when nobody is left."""
        return 0

    def spent(self, cut: bool) -> Usage | None:
        """What it took, as far as is known; ``cut``: somebody ended it who was not the upstream."""
        return self.call.usage if self.attempt.committed else None

    def let_go(self) -> None:
        """It is over: what refers back to it is dropped, so that a request's bodies are freed now and not when cycles are
        looked for. With prompts of 100 KB that is 90 MB."""
        self.deadline = None
        self.race = None
