"""Whatever an upstream does to its connection, the transport says so in our words and leaves nothing behind."""
import asyncio
import contextlib
import gc
import socket
from collections.abc import AsyncIterator, Callable

import pytest

from gateway.core.errors import GatewayError
from gateway.mock import script as s
from gateway.mock.upstream import Upstream
from gateway.upstream.deadline import Deadline
from gateway.upstream.transport import Outgoing, Timeouts
from tests.transports import MAKERS, Either

QUICK = Timeouts(connect_s=2, first_byte_s=0.15, first_token_s=0.3, idle_s=0.15, total_s=0.5)


@pytest.fixture(params=MAKERS)
async def transport(request: pytest.FixtureRequest) -> AsyncIterator[Either]:
    made = MAKERS[request.param]()
    yield made
    await made.close()


def call(up: Upstream, stream: bool = True, timeouts: Timeouts = QUICK, body: bytes = b"{}") -> Outgoing:
    return Outgoing(method="POST", url=up.base_url + "/chat/completions", headers={"Content-Type": "application/json"},
                    body=body, timeouts=timeouts, stream=stream)


async def attempt(transport: Either, out: Outgoing) -> tuple[bytes, GatewayError | None]:
    """One attempt as the pipeline makes it: what was read, and how it failed."""
    got = b""
    try:
        with Deadline(out.timeouts, stream=out.stream) as deadline:
            reply = await transport.send(out)
            try:
                deadline.headers()
                while data := await reply.chunk():
                    deadline.touch()
                    got += data
            finally:
                reply.close()
    except GatewayError as error:
        return got, error
    return got, None


async def nothing_left(transport: Either, up: Upstream) -> None:
    assert transport.open_connections() == 0
    await up.until(lambda: up.busy == 0)
    gc.collect()
    await asyncio.sleep(0)
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not others


STORIES: list[tuple[str, Callable[[], s.Script], str | None, str]] = [
    ("reset before headers", s.reset_before_headers, "transport", "connection reset"),
    ("close before headers", s.close_before_headers, "transport", "closed before an answer"),
    ("reset after headers", s.reset_after_headers, "truncated", "reset inside the answer"),
    ("hang", s.hang, "timeout", "no first byte within 0.15 s"),
    ("slow loris", lambda: s.slow_loris(0.01), "timeout", "no first byte within 0.15 s"),
    ("stall", lambda: s.stall("a", "b"), "timeout", "stream stalled: no data for 0.15 s"),
    ("half frame", lambda: s.half_frame("a"), "truncated", "ended before it was complete"),
    ("cut chunked body", lambda: s.cut_chunked("a", "b"), "truncated", "ended before it was complete"),
    ("cut length", s.cut_length, "truncated", "ended before it was complete"),
    ("garbage", s.garbage, "transport", "not HTTP"),
    ("wrong content type", s.html, None, ""),
    ("error under 200", lambda: s.error(200), None, ""),
    ("whole", lambda: s.stream("a"), None, ""),
]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story[0])
async def test_each_failure_has_its_name_and_leaves_nothing_open(transport: Either, story) -> None:
    _, make, kind, words = story
    async with Upstream(make()) as up:
        _, error = await attempt(transport, call(up))
        assert (error.kind if error else None) == kind
        assert error is None or words in error.message
        assert error is None or str(up.port) not in error.message
        assert len(up.requests) == 1             # a fresh connection that dies is not tried again
        await nothing_left(transport, up)


async def test_what_came_before_the_cut_is_delivered_first(transport: Either) -> None:
    async with Upstream(s.cut_chunked("one", "two")) as up:
        got, error = await attempt(transport, call(up))
    assert b"one" in got and b"two" in got
    assert error is not None and error.kind == "truncated"


async def test_a_whole_answer_without_its_last_chunk_is_delivered_before_the_failure(transport: Either) -> None:
    sends = [step for step in s.stream("x").steps if isinstance(step, s.Send)]
    everything = b"".join(step.data for step in sends)
    async with Upstream(s.script(s.Head(200, s.SSE), s.Send(everything), s.Close())) as up:
        got, error = await attempt(transport, call(up))
    assert got == everything and error is not None


async def test_a_stale_kept_connection_is_replaced_once_even_for_a_post(transport: Either) -> None:
    async with Upstream([s.reply(), s.reset_before_headers(), s.reply("again")]) as up:
        out = call(up, stream=False)
        await attempt(transport, out)
        got, error = await attempt(transport, out)
        assert error is None and b"again" in got
        assert [asked.connection for asked in up.requests] == [1, 1, 2]
        await nothing_left(transport, up)


async def test_the_fresh_connection_is_not_tried_again(transport: Either) -> None:
    async with Upstream([s.reply(), s.close_before_headers(), s.close_before_headers(), s.reply()]) as up:
        out = call(up, stream=False)
        await attempt(transport, out)
        _, error = await attempt(transport, out)
        assert error is not None and error.kind == "transport"
        assert len(up.requests) == 3
        await nothing_left(transport, up)


@pytest.mark.parametrize("part", [b"HTTP/1.1 20", b"HTTP/1.1 200 OK\r\nContent-Type: te"])
async def test_after_any_byte_of_an_answer_nothing_is_sent_twice(transport: Either, part: bytes) -> None:
    async with Upstream([s.reply(), s.script(s.Raw(part), s.Close()), s.reply()]) as up:
        out = call(up, stream=False)
        await attempt(transport, out)
        _, error = await attempt(transport, out)
        assert error is not None and error.kind == "transport"
        assert len(up.requests) == 2
        await nothing_left(transport, up)


async def test_idle_connections_that_the_upstream_closed_are_not_used(transport: Either) -> None:
    async with Upstream(s.reply()) as up:
        out = call(up, stream=False)
        await attempt(transport, out)
        up.drop_idle()
        await up.until(lambda: up.open_connections == 0)
        _, error = await attempt(transport, out)
        assert error is None
        await nothing_left(transport, up)


async def test_a_cancelled_call_closes_its_connection_before_the_headers(transport: Either) -> None:
    async with Upstream(s.hang()) as up:
        task = asyncio.create_task(transport.send(call(up)))
        await up.until(lambda: len(up.requests) == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await up.until(lambda: up.open_connections == 0)
        await nothing_left(transport, up)


async def test_a_call_ends_at_once_even_while_its_body_is_stuck_on_the_way_out(transport: Either) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:        # it listens, and never reads
        out = Outgoing(method="POST", url=f"http://127.0.0.1:{deaf.getsockname()[1]}/v1", headers={}, body=b"x" * 16_000_000,
                       timeouts=QUICK)
        _, error = await attempt(transport, out)
        assert error is not None and error.kind == "timeout"
        assert transport.open_connections() == 0
        deaf.setblocking(True)
        peer, _ = deaf.accept()
        with peer:
            peer.settimeout(5)
            with contextlib.suppress(ConnectionResetError):
                while await asyncio.to_thread(peer.recv, 1 << 20):
                    pass                                        # an end comes, so the socket was closed


async def test_closing_a_stream_midway_reaches_the_upstream(transport: Either) -> None:
    async with Upstream(s.stall("a")) as up:
        reply = await transport.send(call(up))
        assert await reply.chunk()
        assert transport.open_connections() == 1
        reply.close()
        reply.close()
        assert transport.open_connections() == 0
        await up.until(lambda: up.open_connections == 0)


async def test_shutting_down_ends_what_is_under_way(transport: Either) -> None:
    async with Upstream(s.stall("a")) as up:
        await transport.send(call(up))
        await transport.close()
        assert transport.open_connections() == 0
        await up.until(lambda: up.open_connections == 0)
        with pytest.raises(GatewayError, match="shutting down"):
            await transport.send(call(up))
