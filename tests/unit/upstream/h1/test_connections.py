"""How long does a connection live, who uses it next, and what does a slow reader or a large body do to it?"""
import asyncio
import gc
from typing import Any

import pytest

from gateway.core.errors import GatewayError
from gateway.upstream.h1 import dial, pool
from gateway.upstream.h1.names import Names
from gateway.upstream.h1.reply import HOLD_BYTES, H1Reply
from gateway.upstream.h1.transport import H1Transport
from gateway.upstream.transport import Outgoing, Timeouts
from tests.unit.upstream.h1.raw import CLOSE, HI, OK, RESET, raw, told

CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


async def test_a_connection_serves_one_call_after_the_other() -> None:
    async with raw([HI]) as (transport, up):
        for _ in range(5):
            assert await told(transport, up) == (200, b"hi", None)
        assert up.n_connections == 1
        await asyncio.gather(*[told(transport, up) for _ in range(3)])
        assert up.n_connections == 3                 # never two calls on one


@pytest.mark.parametrize("head", [b"Connection: close\r\n", b"connection: Keep-Alive, Close\r\n", b"Keep-Alive: timeout=0\r\n"])
async def test_whoever_says_close_means_it(head: bytes) -> None:
    async with raw([OK + head + b"Content-Length: 2\r\n\r\nhi"]) as (transport, up):
        for _ in range(2):
            assert await told(transport, up) == (200, b"hi", None)
        assert up.n_connections == 2


async def test_http_1_0_is_kept_only_if_it_says_so_and_frames_by_length() -> None:
    old = b"HTTP/1.0 200 OK\r\n"
    for head, n_connections in ((old, 2), (old + b"Connection: keep-alive\r\n", 1)):
        async with raw([head + b"Content-Length: 2\r\n\r\nhi"]) as (transport, up):
            for _ in range(2):
                assert await told(transport, up) == (200, b"hi", None)
            assert up.n_connections == n_connections
    async with raw([old + b"Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"]) as (transport, up):
        for _ in range(2):
            assert await told(transport, up) == (200, b"hi", None)
        assert up.n_connections == 2


@pytest.mark.parametrize(("hint_s", "keep_s"), [(100, 80), (5, 4), (2, 1), (1, 0.5), (0, 0)])
def test_a_connection_is_given_up_well_before_its_upstream_does(hint_s: float, keep_s: float) -> None:
    assert pool.well_before(hint_s) == keep_s


async def test_idle_connections_are_closed_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "SWEEP_S", 0.01)
    async with raw([HI], keepalive_s=0.02) as (transport, up):
        await told(transport, up)
        await up.until(lambda: up.n_lost == 1)
        assert transport._pool._timer is None or not transport._pool._idle
    async with raw([OK + b"Keep-Alive: timeout=1, max=5\r\nContent-Length: 2\r\n\r\nhi"], keepalive_s=99) as (transport, up):
        await told(transport, up)
        conn = next(iter(next(iter(transport._pool._idle)).idle))
        assert conn.idle_until - asyncio.get_running_loop().time() <= 0.5


async def test_only_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MAX_IDLE", 2)
    async with raw([HI]) as (transport, up):
        await asyncio.gather(*[told(transport, up) for _ in range(5)])
        await up.until(lambda: up.n_lost == 3)


async def test_bytes_that_nobody_asked_for_end_an_idle_connection() -> None:
    async with raw([HI, HI]) as (transport, up):
        assert await told(transport, up) == (200, b"hi", None)
        await up.until(lambda: up.n_lost == 1)
        assert await told(transport, up) == (200, b"hi", None) and up.n_connections == 2


async def test_a_stale_connection_is_replaced_by_a_fresh_one_not_by_another_kept_one() -> None:
    async with raw([HI], [HI], [CLOSE], [RESET], [HI]) as (transport, up):
        await asyncio.gather(told(transport, up), told(transport, up))
        assert await told(transport, up) == (0, b"", "transport")
        assert up.n_connections == 3 and len(up.requests) == 4
        assert await told(transport, up) == (200, b"hi", None)
        assert up.n_connections == 3


async def test_a_cancelled_call_whose_answer_had_come_leaves_the_connection_to_the_next() -> None:
    async with raw([HI], []) as (transport, up):
        await told(transport, up)
        task = asyncio.ensure_future(transport.send(up.call()))
        await asyncio.sleep(0)
        conn = next(iter(transport._pool.busy))
        conn.data_received(HI)                       # answered, whole, and given back before the task runs again
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert conn in conn.origin.idle and conn.transport is not None


async def test_a_client_that_has_gone_takes_its_upstream_along() -> None:
    async with raw([CHUNKED + b"2\r\nhi\r\n"]) as (transport, up):
        reply = await transport.send(up.call())
        assert await reply.chunk() == b"hi"
        waiting = asyncio.ensure_future(reply.chunk())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        reply.close()
        await up.until(lambda: up.n_lost == 1)
        assert transport.open_connections() == 0 and await reply.chunk() == b""


async def test_who_waits_when_the_gateway_goes_down_is_told() -> None:
    async with raw([CHUNKED + b"2\r\nhi\r\n"]) as (transport, up):
        reply = await transport.send(up.call())
        await reply.chunk()
        waiting = asyncio.ensure_future(reply.chunk())
        await asyncio.sleep(0)
        await transport.close()
        with pytest.raises(GatewayError, match="shutting down"):
            await waiting


async def test_a_slow_reader_holds_a_bounded_part() -> None:
    block = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    async with raw([CHUNKED, *[block] * 150, b"0\r\n\r\n"]) as (transport, up):
        reply = await transport.send(up.call())
        most = n_bytes = 0
        while data := await reply.chunk():
            n_bytes += len(data)
            await asyncio.sleep(0.001)
            most = max(most, reply._n_held)
        assert n_bytes == 150 * 65_536
        assert most <= HOLD_BYTES + 262_144          # the limit, and the one read that passed it


async def test_a_small_body_that_swells_is_opened_as_it_is_asked_for() -> None:
    import gzip
    packed = gzip.compress(b"\0" * 12_000_000)
    head = OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    async with raw([head + packed]) as (transport, up):
        reply = await transport.send(up.call())
        assert len(await reply.chunk()) <= 65_536
        with pytest.raises(GatewayError, match="larger than"):
            await reply.read(1_000_000)


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 262_144, 262_145, 3_000_000])
async def test_bodies_of_every_size_arrive_as_they_were(size: int) -> None:
    body = bytes(i & 255 for i in range(256)) * (size // 256 + 1)
    async with raw([HI]) as (transport, up):
        for _ in range(2):
            assert await told(transport, up, body=body[:size]) == (200, b"hi", None)
        assert all(asked.endswith(b"Content-Length: %d\r\n\r\n" % size + body[:size]) for asked in up.requests)
        assert up.n_connections == 1


async def test_an_answer_may_come_while_the_body_is_on_its_way() -> None:
    """413 before the body was read: the answer counts, the connection does not."""
    ended = asyncio.Event()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        while await reader.read(1) and not writer.is_closing():
            if ended.is_set():
                break
            await asyncio.sleep(0.01)
        writer.close()
    server = await asyncio.start_server(refuse, "127.0.0.1", 0, limit=4_096)
    transport = H1Transport()
    out = Outgoing(method="POST", url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", headers={}, body=b"x" * 30_000_000,
                   timeouts=Timeouts(connect_s=2))
    reply = await transport.send(out)
    assert reply.status == 413 and await reply.read(100) == b"no"
    assert transport.open_connections() == 0 and not transport._pool._idle
    ended.set()
    await transport.close()
    server.close()


async def test_an_answered_call_is_freed_at_once_without_the_collector() -> None:
    async with raw([CHUNKED, b"2\r\nhi\r\n", b"0\r\n\r\n"], [HI], [OK + b"Content-Length: 9\r\n\r\nhi", CLOSE]) as (transport, up):
        gc.collect()
        of_others = {id(thing) for thing in gc.get_objects() if isinstance(thing, H1Reply)}
        gc.disable()
        try:
            for _ in range(3):
                await told(transport, up)
            await asyncio.sleep(0)
            assert not [thing for thing in gc.get_objects() if isinstance(thing, H1Reply) and id(thing) not in of_others]
        finally:
            gc.enable()


# -- names and addresses

async def test_a_name_is_asked_for_once_by_all_who_wait_and_then_remembered() -> None:
    asked: list[str] = []

    async def lookup(host: str, port: int) -> Any:
        asked.append(host)
        await asyncio.sleep(0)
        if host == "gone.test":
            raise OSError("no such name")
        return [(2, 1, 6, "", ("127.0.0.1", port))]
    names = Names(lookup)
    waiting = [asyncio.ensure_future(names.find("a.test", 1)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()                              # who gives up takes nothing away from the others
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError) and found[1] == found[2]
    await names.find("a.test", 1)
    assert asked == ["a.test"]
    names.forget("a.test", 1)
    await names.find("a.test", 1)
    assert asked == ["a.test"] * 2
    for _ in range(2):                               # that there is none is not remembered
        with pytest.raises(OSError, match="no such name"):
            await names.find("gone.test", 1)
    assert asked == ["a.test"] * 2 + ["gone.test"] * 2


async def test_a_name_is_asked_again_when_its_time_is_over() -> None:
    asked: list[str] = []

    async def lookup(host: str, port: int) -> Any:
        asked.append(host)
        return []
    names = Names(lookup, ttl_s=0)
    await names.find("a.test", 1)
    await names.find("a.test", 1)
    assert len(asked) == 2


async def test_an_address_needs_no_lookup_and_the_next_address_is_tried() -> None:
    names = Names()
    assert [found[4][:2] for found in await names.find("127.0.0.1", 5)] == [("127.0.0.1", 5)]
    assert [found[4][:2] for found in await names.find("::1", 5)] == [("::1", 5)]
    async with raw([HI]) as (transport, up):
        port = int(up.url.split(":")[2].split("/")[0])
        dead_first = [(10, 1, 6, "", ("::1", port, 0, 0)), (2, 1, 6, "", ("127.0.0.1", port))]
        transport._dialer._names._known.put(("two.test", port), (asyncio.get_running_loop().time() + 9, dead_first))
        assert await told(transport, up, url=f"http://two.test:{port}/") == (200, b"hi", None)
        assert b"\r\nHost: two.test:%d\r\n" % port in up.requests[0]


async def test_what_does_not_belong_into_a_request_never_leaves() -> None:
    async with raw([HI]) as (transport, up):
        for url in (up.url + "/a b", up.url + "/\r\nX: y", up.url + "/é"):
            assert (await told(transport, up, url=url))[2] == "transport"
        for headers in ({"Content-Length": "1"}, {"transfer-encoding": "chunked"}, {"X": "a\0b"}):
            assert (await told(transport, up, headers=headers))[2] == "internal"
        assert (await told(transport, up, method="GET /x HTTP/1.1\r\nA:"))[2] == "transport"
        assert not up.requests


def test_the_dialer_makes_each_context_once() -> None:
    dialer = dial.Dialer(pool.Pool(1), None)
    assert dialer.context(False) is dialer.context(False) is not dialer.context(True)
