"""Who has answered, who is waited for, and when is it enough? The members of a panel at work, all at once.

    wave      the first k are asked at once; who fails is replaced by the next in order, as long as there is no quorum
    quorum    so many answers are enough: the others get ``grace_s`` more, then they are left, which is nobody's failure
    timeout   the whole panel's time; who has not answered by then has timed out

Each member runs in a task of its own. The tasks end with the request, whatever its end is: none outlives ``end``.
"""
import asyncio
from typing import Any, Final

from gateway.core.call import Attempt, Call
from gateway.core.errors import GatewayError
from gateway.core.events import Usage
from gateway.core.redact import clip
from gateway.pipeline.deliver import Client
from gateway.pipeline.fusion import frames
from gateway.pipeline.fusion.brief import Brief
from gateway.pipeline.fusion.seat import Draft, Seat
from gateway.pipeline.ground import Ground
from gateway.pipeline.patience import LOOK_S, company
from gateway.pipeline.prepare import Plan
from gateway.routing import exhaust
from gateway.routing.outcomes import OUTCOMES
from gateway.routing.walk import Walk

TITLE_CHARS: Final = 240                             # of X-Routed-Via: it must end with its bracket


class Panel:
    """The panel of one request. ``call`` is the client's; each seat has a part of it."""

    __slots__ = ("brief", "call", "client", "closing", "ground", "judge", "kind", "member_plan", "pending", "plan", "running", "seats",
                 "shows", "spent")

    def __init__(self, call: Call, plan: Plan, member_plan: Plan, client: Client, ground: Ground) -> None:
        assert isinstance(plan.brief, Brief)
        self.call = call
        self.plan = plan
        self.brief: Brief = plan.brief
        self.member_plan = member_plan
        self.client = client
        self.ground = ground
        self.seats: list[Seat] = []
        self.running: dict[asyncio.Task[None], Seat] = {}
        self.judge: Call | None = None               # whose attempts follow the panel's
        self.kind = ""                               # of the last word: judge · best · tool_call
        self.shows = call.wire == "openai-chat" and call.operation == "chat"
        self.pending: list[dict[str, Any]] = []      # what clients that know of panels are told, not sent yet

    # ------------------------------------------------------------------ what is known of it
    @property
    def drafts(self) -> list[Draft]:
        return [draft for seat in self.seats if (draft := seat.draft) is not None]

    @property
    def good(self) -> int:
        return sum(1 for draft in self.drafts if draft.answers)

    @property
    def attempts(self) -> list[Attempt]:
        """Of everybody, as they began."""
        calls = [seat.call for seat in self.seats] + ([self.judge] if self.judge is not None else [])
        return sorted([attempt for call in calls for attempt in call.attempts], key=lambda attempt: attempt.started)

    def via(self, answering: Attempt | None) -> str:
        """``fusion(a/m+b/n -> c/j)``: who answered, and who had the last word; before that, whoever was asked."""
        asked = [seat.label for seat in self.seats if seat.draft is not None or self.kind == ""]
        last = f" -> {'tool_call:' if self.kind == 'tool_call' else ''}{answering.label}" if answering is not None else ""
        if not asked or (answering is None and self.kind):
            return ""
        room, shown = TITLE_CHARS - len(last), list[str]()
        for label in asked:
            if sum(map(len, shown)) + len(shown) + len(label) > room - 20:
                shown.append(f"{len(asked) - len(shown)} more")
                break
            shown.append(label)
        return f"fusion({'+'.join(shown)}{last})"

    def usage(self, also: Usage | None = None) -> Usage | None:
        """What all of it took together; ``also``: of the answer that is just being told."""
        found = [attempt.usage for attempt in self.attempts if attempt.usage is not None] + ([also] if also is not None else [])
        if not found:
            return None
        sums = {name: sum([getattr(one, name) for one in found]) for name in ("input", "output", "cached", "cache_write", "reasoning")}
        return Usage(**sums, total=sums["input"] + sums["output"], estimated=any(one.estimated for one in found))

    # ------------------------------------------------------------------ at work
    async def gather(self) -> None:
        """Until enough have answered, or nobody is left, or the time is over."""
        brief, clock = self.brief, self.ground.clock
        waiting = list(reversed(brief.members))
        until = overdue = clock.now() + brief.timeout_s
        while waiting and len(self.seats) < brief.k:
            self.seat(waiting.pop())
        await self.opened()
        while self.running:
            now = clock.now()
            if now >= until:
                break
            done, _ = await asyncio.wait(self.running, timeout=min(until - now, LOOK_S), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                seat = self.running.pop(task)
                task.result()
                self.pending.append(frames.panel(seat))
                if seat.error is not None and waiting and self.good < brief.quorum and OUTCOMES[seat.error.kind].moves_on:
                    self.seat(waiting.pop())
            if self.good >= brief.quorum and until == overdue:
                until = min(overdue, clock.now() + brief.grace_s)
            if self.good >= brief.k:
                break
            await self.told()
        now = clock.now()
        await self.end(GatewayError("timeout", f"no answer within {brief.timeout_s:g} s") if now >= overdue else None)
        await self.told()

    def seat(self, member: Any) -> None:
        seat = Seat(member, self.call, self.member_plan, self.client, self.ground)
        self.seats.append(seat)
        self.running[asyncio.create_task(seat.run())] = seat

    async def end(self, why: GatewayError | None = None) -> None:
        """Whoever still runs is left. ``why``: the panel's time is over, or its client is gone; None: others were enough."""
        running, self.running = self.running, {}
        if not running:
            return
        for task, seat in running.items():
            if not task.done():
                seat.left(why)
                task.cancel()
        await asyncio.wait(running)
        for task, seat in running.items():
            if not task.cancelled():
                task.exception()                     # looked at, since nobody else will
            seat.settled(why)
            self.pending.append(frames.panel(seat))

    # ------------------------------------------------------------------ what the client hears meanwhile
    async def opened(self) -> None:
        """With ``fusion.progress`` the stream begins at once, naming whoever was asked."""
        if self.plan.request.stream and self.shows and self.ground.snapshot.fusion.progress:
            self.client.route_headers = {"X-Routed-Via": self.via(None)}
            await self.client.start()
            self.client.last_write = self.ground.clock.now()

    async def told(self) -> None:
        """Keep the client company; whatever it may hear already, it hears now."""
        client, now = self.client, self.ground.clock.now()
        if not self.plan.request.stream:
            return
        if not client.started:
            client.route_headers = {"X-Routed-Via": self.via(None)}
        company(client, self.call, self.ground, now)
        if self.pending and self.shows and client.started:
            await client.write(self.frames(), now)

    def frames(self) -> bytes:
        """Everything pending, as frames that other clients take for empty ones."""
        pending, self.pending = self.pending, []
        return b"".join([frames.written(self.call, self.plan.request.model, one) for one in pending]) if self.shows else b""

    # ------------------------------------------------------------------ nobody answered
    def failure(self) -> GatewayError:
        """The honest end: the request's own fault in the first one's words, else the status that the failures have in common."""
        errors = [seat.error for seat in self.seats if seat.error is not None]
        own = next((error for error in errors if not OUTCOMES[error.kind].moves_on and error.kind != "exhausted"), None)
        tries = self.attempts
        if own is not None or not any(attempt.error is not None for attempt in tries):
            return own or errors[0]
        walk = Walk(self.plan.resolution, self.plan.request, self.ground.health, self.plan.input_tokens, self.call.started)
        now, wall = self.ground.clock.now(), self.ground.clock.wall()
        return exhaust.exhausted(tries, walk, now, wall, timed_out=False)

    def title(self) -> str:
        """Of the record: who sat there, and how it went."""
        told = [f"{seat.label}: {'ok' if seat.error is None else seat.error.kind}" for seat in self.seats]
        judge = f"; judge {self.judge.routed or 'failed'}" if self.judge is not None else ""
        return clip(f"panel of {self.brief.k}: {', '.join(told)}{judge}", 500)
