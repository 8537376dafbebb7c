"""How does one member of a panel answer? By the loop of every request, to a client that keeps the turn for the judge."""
import logging
from typing import Final

import msgspec

from gateway.core import events as ev
from gateway.core.call import Attempt, Call
from gateway.core.errors import GatewayError
from gateway.pipeline import attempts
from gateway.pipeline.attempt import Exchange, try_once
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground, Lane
from gateway.pipeline.prepare import Plan
from gateway.pipeline.search import Way
from gateway.pipeline.shadow import Nobody
from gateway.pipeline.sinks import Sink, WholeSink, commit, conclude
from gateway.routing.resolve import Resolution

log = logging.getLogger("gateway.fusion")

MOST_KEYS: Final = 4                                 # attempts of one member, each with another key
SAME: Final = ("id", "wall", "surface", "wire", "operation", "request", "principal", "client", "session", "accounts",
               "trace")


class Draft(msgspec.Struct, frozen=True, eq=False):
    """A whole turn of a member."""
    x: Exchange
    events: list[ev.Event]

    @property
    def text(self) -> str:
        return "".join([event.text for event in self.events if type(event) is ev.Text])

    @property
    def calls(self) -> list[ev.ToolCall]:
        return [event for event in self.events if type(event) is ev.ToolCall]

    @property
    def whole(self) -> bool:
        """Did it end by itself?"""
        return all(event.reason in ("stop", "tool_calls") for event in self.events if type(event) is ev.Finish)

    @property
    def answers(self) -> bool:
        """Is it something to judge? A refusal is an answer, but no draft of one."""
        return bool(self.calls) or not (not self.text or self.text.isspace())


class Drawer(Nobody):
    """The client of a member. ``draft`` is the turn, once it is whole."""

    __slots__ = ("draft",)

    def __init__(self, call: Call, of: Client) -> None:
        super().__init__(call, of)
        self.draft: Draft | None = None


class Drafting(Exchange):
    """One attempt of a member."""

    __slots__ = ()

    def __init__(self, call: Call, attempt: Attempt, lane: Lane, plan: Plan, client: Client, ground: Ground) -> None:
        super().__init__(call, attempt, lane, plan, client, ground)
        attempt.role = "panel"
        self.sink: Sink = Collecting(self)


class Collecting(WholeSink):
    """The turn of a member, kept. Its session remembers nothing of it unless the client gets to see it."""

    __slots__ = ()

    def __init__(self, x: Exchange) -> None:
        super().__init__(x)
        self.model = x.lane.to_whole.model

    async def close(self, out: list[ev.Event]) -> None:
        x = self.x
        self.gather(out)
        commit(x, x.ground.clock.now())
        notes, x.notes = x.notes, None
        conclude(x, self.events)
        x.notes = notes
        assert isinstance(x.client, Drawer)
        x.client.draft = Draft(x, self.events)


async def nothing_left(x: Exchange) -> bool:
    """What a member or a judge did not finish, or not in the form that was asked for, is worse than what others have."""
    return False


WAY: Final = Way(Drafting, try_once, nothing_left, most=MOST_KEYS)


class Seat:
    """One member at work. Its call is a part of the client's: same names, same numbers of keys, the same reservation."""

    __slots__ = ("call", "client", "error", "ground", "member", "plan")

    def __init__(self, member: Resolution, call: Call, plan: Plan, client: Client, ground: Ground) -> None:
        self.member = member
        self.ground = ground
        self.error: GatewayError | None = None
        self.call = part(call, "panel", ground)
        self.client = Drawer(self.call, client)
        self.plan = msgspec.structs.replace(plan, resolution=member)

    @property
    def label(self) -> str:
        return self.member.targets[0].label

    @property
    def draft(self) -> Draft | None:
        return self.client.draft

    async def run(self) -> None:
        """Answer, or say why not; raises nothing but cancellation."""
        try:
            await attempts.run(self.call, self.plan, self.client, self.ground, WAY)
        except GatewayError as error:
            self.error = error
        except Exception:
            log.exception("a member of the panel of request %s failed inside the gateway", self.call.id)
            self.error = GatewayError("internal", "The gateway failed on this member; its log has the details.")

    def left(self, why: GatewayError | None) -> None:
        """Nobody waits for it any more: too late (None: enough others have answered)."""
        if self.draft is None:
            self.error = why or GatewayError("timeout", "was left: enough others had answered")
            for attempt in self.call.attempts:
                if not attempt.ended:
                    attempt.hedged = why is None
                    attempt.ended = self.ground.clock.now()

    def settled(self, why: GatewayError | None) -> None:
        """Its task is over. What ended it was not the client's leaving."""
        for attempt in self.call.attempts:
            if why is not None and attempt.error is not None and attempt.error.kind == "client_gone":
                attempt.error = why


def part(call: Call, role: str, ground: Ground) -> Call:
    """A call for a part of the request's work."""
    made = Call(role=role, started=ground.clock.now(), **{name: getattr(call, name) for name in SAME})
    if call.hold is not None:
        made.hold = call.hold.part()
    return made
