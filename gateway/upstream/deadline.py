"""How long may an attempt be silent, and at what point?

One timer in the loop holds all of an attempt's limits. It is armed for the earliest moment at which something could be due, at
most a few seconds ahead (then together with others), and looks again when it fires: what happened in between is an attribute
(``touch``), never a timer call. On expiry the task that runs the attempt is cancelled, and the cancellation comes out of
``with deadline:`` as GatewayError("timeout"), unless somebody else cancelled that task as well: then theirs wins (the rule of
asyncio.timeout).

Phases: start -> ``headers()`` -> ``token()``. While we write to a slow client (``pause`` ... ``resume``) the upstream is not
blamed for silence. The same timer calls ``on_tick`` at the moments asked for with ``wake_at``: keep-alives, and turns that hold
something.
"""
import asyncio
from collections.abc import Callable
from math import inf
from types import TracebackType
from typing import Final, Self

from gateway.core.errors import GatewayError
from gateway.upstream.transport import Timeouts

SLACK_S: Final = 0.002                       # uvloop's clock counts in whole milliseconds
LOOK_S: Final = 5.0                          # the timer looks at least so often: what is set meanwhile needs no timer call of its own
ROUND_S: Final = 0.25                        # those that begin within it look together: a timer of one's own costs 3 µs


class Round:
    """Attempts for which nothing is due soon: one timer looks after all of them. Most have ended when it fires."""

    __slots__ = ("loop", "members", "until", "when")

    def __init__(self, loop: asyncio.AbstractEventLoop, now: float) -> None:
        self.loop = loop
        self.members: set[Deadline] = set()
        self.until = now + ROUND_S                                # others may join before
        self.when = now + LOOK_S
        loop.call_at(self.when, self._fire)

    def _fire(self) -> None:
        members, self.members = self.members, set()
        for deadline in members:
            deadline.look()


_round: Round | None = None


def joined(loop: asyncio.AbstractEventLoop, now: float) -> Round:
    """The round that is open now."""
    global _round
    current = _round
    if current is None or current.loop is not loop or now >= current.until:
        current = _round = Round(loop, now)
    return current


class Deadline:
    """``with Deadline(timeouts, stream=True) as deadline:`` around one attempt, in the task that runs it."""

    __slots__ = ("seen", "on_tick", "_timeouts", "_stream", "_loop", "_task", "_cancelling", "_timer", "_in", "_armed", "_tick_at",
                 "_start", "_first_byte_at", "_first_token_at", "_total_at", "_idle_s", "_end_at", "_paused", "_why")

    def __init__(self, timeouts: Timeouts, *, stream: bool, on_tick: Callable[[float], None] | None = None,
                 start: float | None = None) -> None:
        """``start``: when the attempt began, in the loop's time; now if not given."""
        self.on_tick = on_tick
        self._timeouts = timeouts
        self._stream = stream
        self._loop = asyncio.get_running_loop()
        self._start = self._loop.time() if start is None else start
        self.seen = self._start                                   # when the upstream last gave a sign of life
        self._task: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._in: Round | None = None
        self._armed = self._tick_at = inf
        self._first_byte_at = self._at(timeouts.first_byte_s)
        self._first_token_at = self._at(timeouts.first_token_s) if stream else inf
        self._total_at = inf if stream else self._at(timeouts.total_s)
        self._idle_s = inf                                        # counts from the headers on
        self._end_at = inf
        self._paused = False
        self._why: BaseException | None = None

    def _at(self, limit_s: float) -> float:
        return self._start + limit_s if limit_s > 0 else inf

    # -- the life of an attempt

    def __enter__(self) -> Self:
        self._task = asyncio.current_task()
        assert self._task is not None, "a deadline needs a task to cancel"
        self._cancelling = self._task.cancelling()
        self._arm()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        self._disarm()
        self.on_tick = None                                       # it refers to the attempt, which refers to us
        task, self._task = self._task, None
        why, self._why = self._why, None
        if why is None or task is None:
            return
        # our cancel() is taken back; what is left is somebody else's
        ours_alone = task.uncancel() <= self._cancelling
        if ours_alone and kind is not None and issubclass(kind, asyncio.CancelledError):
            raise why from None

    def headers(self) -> None:
        """The status line came: silence is measured from here on."""
        self._first_byte_at = inf
        self._idle_s = self._timeouts.idle_s or inf
        self.seen = self._loop.time()
        if self.seen + self._idle_s < self._armed:
            self._arm()

    def token(self) -> None:
        """The first content or reasoning token came."""
        self._first_token_at = inf

    def ending(self, within_s: float) -> None:
        """All was said but goodbye: so long the end may take from the first call on, whatever else comes."""
        if self._end_at == inf:
            self._end_at = self._loop.time() + within_s
            if self._end_at < self._armed and not self._paused:
                self._arm()

    def touch(self) -> None:
        """The upstream said something, be it a comment."""
        self.seen = self._loop.time()

    def pause(self) -> None:
        """We are busy elsewhere (writing to the client): silence does not count."""
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self.seen = self._loop.time()
        if self._end_at < self._armed:
            self._arm()

    def wake_at(self, when: float) -> None:
        """Call ``on_tick`` once, not before ``when`` (loop time). A later call replaces an earlier one; inf = do not."""
        self._tick_at = when
        if when < self._armed and self._task is not None:
            self._arm()

    def give_up(self, why: GatewayError) -> None:
        """End the attempt now, for a reason that is not the upstream's: it comes out of ``with`` like an expired limit."""
        self._cancel(why)

    # -- the timer

    def _arm(self) -> None:
        due = min(self._first_byte_at, self._first_token_at, self._total_at, self.seen + self._idle_s, self._tick_at,
                  inf if self._paused else self._end_at)
        self._disarm()
        if due == inf:
            return
        now = self._loop.time()
        if due >= now + LOOK_S:
            self._in = joined(self._loop, now)
            self._in.members.add(self)
            due = self._in.when
        else:
            self._timer = self._loop.call_at(due, self.look)
        self._armed = due

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._in is not None:
            self._in.members.discard(self)
            self._in = None
        self._armed = inf

    def look(self) -> None:
        """A timer fired: is anything due?"""
        self._timer = self._in = None
        self._armed = inf
        now = self._loop.time() + SLACK_S
        if self._paused:
            self.seen = now
        text = self._expired(now)
        if text is not None:
            self._cancel(GatewayError("timeout", text))
            return
        if self._tick_at <= now:
            self._tick_at = inf
            self._tick(now)
        if self._why is None and self._task is not None and self._timer is None and self._in is None:
            self._arm()

    def _tick(self, now: float) -> None:
        if self.on_tick is None:
            return
        try:
            self.on_tick(now)
        except Exception as exc:                                  # it belongs to the attempt: it comes out there
            self._cancel(exc)

    def _expired(self, now: float) -> str | None:
        limits = self._timeouts
        if self._first_byte_at <= now:
            return f"no first byte within {limits.first_byte_s:g} s"
        if self._first_token_at <= now:
            return f"no first token within {limits.first_token_s:g} s"
        if self._total_at <= now:
            return f"no complete answer within {limits.total_s:g} s"
        if self._end_at <= now and not self._paused:
            return "the stream did not end after its finish reason"
        if self.seen + self._idle_s <= now:
            return f"stream stalled: no data for {limits.idle_s:g} s"
        return None

    def _cancel(self, why: BaseException) -> None:
        if self._task is not None and self._why is None:
            self._why = why
            self._task.cancel()
