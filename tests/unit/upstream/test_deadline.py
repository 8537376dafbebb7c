"""One timer holds all limits of an attempt; real cancellation stays what it is."""
import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from gateway.core.errors import GatewayError
from gateway.upstream.deadline import Deadline
from gateway.upstream.transport import Timeouts

NONE = {"connect_s": 0.0, "first_byte_s": 0.0, "first_token_s": 0.0, "idle_s": 0.0, "total_s": 0.0}


def limits(**some: float) -> Timeouts:
    return Timeouts(**{**NONE, **some})


class FakeLoop:
    """A loop whose clock moves when told to, which counts its timers."""

    def __init__(self, real: asyncio.AbstractEventLoop) -> None:
        self.real, self.now, self.calls = real, 1_000.0, 0
        self.timers: list[tuple[float, Callable[[], None], Any]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], None]) -> Any:
        self.calls += 1
        entry = (when, callback, object())
        self.timers.append(entry)
        loop = self

        class Handle:
            def cancel(self) -> None:
                loop.timers = [t for t in loop.timers if t is not entry]
        return Handle()

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while due := sorted((t for t in self.timers if t[0] <= end), key=lambda t: t[0]):
            self.timers.remove(due[0])
            self.now = max(self.now, due[0][0])
            due[0][1]()
        self.now = end


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> FakeLoop:
    fake = FakeLoop(asyncio.new_event_loop())
    fake.real.close()
    monkeypatch.setattr("gateway.upstream.deadline.asyncio.get_running_loop", lambda: fake)
    return fake


async def silent(loop: FakeLoop, deadline: Deadline, *steps: Any) -> None:
    """An attempt: the given steps (seconds to pass, or methods to call), then waiting for ever."""
    with deadline:
        for step in steps:
            if callable(step):
                step()
            else:
                loop.advance(step)
            await asyncio.sleep(0)
        await asyncio.Event().wait()


@pytest.mark.parametrize(("some", "stream", "text"), [
    ({"first_byte_s": 60}, True, "no first byte within 60 s"),
    ({"first_byte_s": 60}, False, "no first byte within 60 s"),
    ({"first_token_s": 1.5}, True, "no first token within 1.5 s"),
    ({"total_s": 600}, False, "no complete answer within 600 s"),
])
async def test_each_limit_names_itself(loop: FakeLoop, some: dict[str, float], stream: bool, text: str) -> None:
    with pytest.raises(GatewayError) as caught:
        await silent(loop, Deadline(limits(**some), stream=stream), *some.values())
    assert (caught.value.kind, caught.value.message) == ("timeout", text)
    assert asyncio.current_task().cancelling() == 0
    assert not loop.timers


async def test_silence_counts_from_the_headers_and_any_sign_of_life_starts_it_anew(loop: FakeLoop) -> None:
    deadline = Deadline(limits(idle_s=10), stream=True)
    steps = (1_000.0, deadline.headers, 9.0, deadline.touch, 9.0, deadline.touch, 9.0)
    task = asyncio.ensure_future(silent(loop, deadline, *steps))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not task.done()
    loop.advance(1.1)
    with pytest.raises(GatewayError, match="stream stalled: no data for 10 s"):
        await task


async def test_the_first_token_may_be_late_although_bytes_come(loop: FakeLoop) -> None:
    deadline = Deadline(limits(first_byte_s=5, first_token_s=30, idle_s=20), stream=True)
    with pytest.raises(GatewayError, match="no first token within 30 s"):
        await silent(loop, deadline, 1.0, deadline.headers, 14.0, deadline.touch, 14.0, deadline.touch, 2.0)


async def test_after_the_first_token_and_for_streams_there_is_no_other_limit_than_silence(loop: FakeLoop) -> None:
    deadline = Deadline(limits(first_byte_s=5, first_token_s=30, total_s=50, idle_s=20), stream=True)
    with deadline:
        deadline.headers()
        deadline.token()
        for _ in range(100):
            loop.advance(19.0)
            deadline.touch()
        await asyncio.sleep(0)


async def test_the_goodbye_has_a_limit_of_its_own_that_no_comment_puts_off(loop: FakeLoop) -> None:
    deadline = Deadline(limits(idle_s=20), stream=True)
    ended = []
    with pytest.raises(GatewayError, match="did not end after its finish reason"):
        with deadline:
            deadline.headers()
            for _ in range(40):
                deadline.pause()
                deadline.ending(5.0)
                deadline.resume()
                loop.advance(0.2)
                ended.append(loop.now)
                await asyncio.sleep(0)
    assert len(ended) <= 26


async def test_the_goodbye_does_not_end_a_write_to_a_slow_client(loop: FakeLoop) -> None:
    deadline = Deadline(limits(idle_s=20), stream=True)
    with deadline:
        deadline.headers()
        deadline.pause()
        deadline.ending(5.0)
        loop.advance(60.0)
        await asyncio.sleep(0)
    with pytest.raises(GatewayError, match="did not end"):
        with deadline:
            deadline.resume()
            loop.advance(0.1)
            await asyncio.sleep(0)


async def test_a_slow_client_is_not_the_upstreams_silence(loop: FakeLoop) -> None:
    deadline = Deadline(limits(idle_s=10), stream=True)
    with pytest.raises(GatewayError, match="stalled"):
        with deadline:
            deadline.headers()
            deadline.pause()
            loop.advance(95.0)
            await asyncio.sleep(0)
            deadline.resume()
            loop.advance(9.0)
            await asyncio.sleep(0)
            loop.advance(2.0)
            await asyncio.sleep(0)
            raise AssertionError("silence after the pause was not noticed")


async def test_neither_chunks_nor_phases_cost_a_timer_call(loop: FakeLoop) -> None:
    deadline = Deadline(limits(first_byte_s=60, first_token_s=90, idle_s=9), stream=True)
    with deadline:
        deadline.headers()
        deadline.wake_at(loop.now + 15)
        deadline.token()
        for _ in range(400):
            loop.advance(0.01)
            deadline.touch()
        assert loop.calls == 1
        loop.advance(8.0)
        await asyncio.sleep(0)
    assert loop.calls < 5


async def test_ticks_come_when_asked_for_and_share_the_timer(loop: FakeLoop) -> None:
    seen: list[float] = []

    def tick(now: float) -> None:
        seen.append(round(now - 1_000))
        if len(seen) < 3:
            deadline.wake_at(now + 15)
    deadline = Deadline(limits(idle_s=100), stream=True, on_tick=tick)
    with deadline:
        deadline.headers()
        deadline.wake_at(1_015.0)
        loop.advance(90.0)
        await asyncio.sleep(0)
        assert len(loop.timers) == 1
    assert seen == [15, 30, 45]


async def test_a_failing_tick_ends_the_attempt_with_its_own_error(loop: FakeLoop) -> None:
    def tick(now: float) -> None:
        raise GatewayError("empty", "held too long")
    deadline = Deadline(limits(), stream=True, on_tick=tick)
    deadline.wake_at(1_001.0)
    with pytest.raises(GatewayError, match="held too long"):
        await silent(loop, deadline, 2.0)


async def test_somebody_elses_cancellation_is_not_turned_into_a_timeout(loop: FakeLoop) -> None:
    deadline = Deadline(limits(first_byte_s=5), stream=True)
    task = asyncio.ensure_future(silent(loop, deadline))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    loop.advance(10)                                 # who has ended is not looked after any more
    assert not loop.timers


async def test_when_both_happen_at_once_the_cancellation_wins(loop: FakeLoop) -> None:
    deadline = Deadline(limits(first_byte_s=5), stream=True)
    task = asyncio.ensure_future(silent(loop, deadline))
    await asyncio.sleep(0)
    loop.advance(6.0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_another_error_passes_and_takes_the_timeouts_cancellation_back(loop: FakeLoop) -> None:
    with pytest.raises(ZeroDivisionError):
        with Deadline(limits(first_byte_s=5), stream=True):
            loop.advance(6.0)
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                raise ZeroDivisionError from None
    await asyncio.sleep(0)
    assert asyncio.current_task().cancelling() == 0


async def test_zero_means_no_limit_and_no_timer(loop: FakeLoop) -> None:
    with Deadline(limits(), stream=True) as deadline:
        deadline.headers()
        loop.advance(1e9)
        await asyncio.sleep(0)
    assert loop.calls == 0


async def test_it_works_on_a_real_loop() -> None:
    with pytest.raises(GatewayError, match="no first byte within 0.01 s"):
        with Deadline(limits(first_byte_s=0.01), stream=True):
            await asyncio.sleep(30)


async def test_attempts_that_begin_together_are_looked_after_by_one_timer(loop: FakeLoop) -> None:
    """And each still ends at its own time."""
    loop.calls = 0
    near, far = (Deadline(limits(first_byte_s=s), stream=True) for s in (7, 60))
    tasks = [asyncio.ensure_future(silent(loop, deadline)) for deadline in (near, far)]
    await asyncio.sleep(0)
    assert loop.calls == 1 and len(loop.timers) == 1
    loop.advance(6.9)
    await asyncio.sleep(0)
    assert not tasks[0].done()
    loop.advance(0.1)
    with pytest.raises(GatewayError, match="no first byte within 7 s"):
        await tasks[0]
    assert not tasks[1].done()
    loop.advance(53)
    with pytest.raises(GatewayError, match="no first byte within 60 s"):
        await tasks[1]
    loop.advance(10)
    assert not loop.timers
