"""Responses written by hand: whole ones and streams, in as few writes as there are things to say."""
import asyncio

import pytest
from aiohttp import HttpVersion10, HttpVersion11

from gateway.pipeline.direct import Direct, possible


class Wire:
    """A request's connection, and its writer."""

    def __init__(self, version=HttpVersion11, keep_alive=True, method="POST", closing=False):
        self.version, self.keep_alive, self.method = version, keep_alive, method
        self.transport = self.protocol = self
        self.closing = closing
        self.written: list[bytes] = []
        self.drained = 0
        self.writing_paused = True

    def is_closing(self):
        return self.closing

    def write(self, data):
        self.written.append(data)

    async def _drain_helper(self):
        self.drained += 1


HEADERS = {"Server": "gateway", "X-Routed-Via": "p/m"}
WALL = 784111777.9                               # RFC 9110's own example
HEAD = b"HTTP/1.1 200 OK\r\nServer: gateway\r\nX-Routed-Via: p/m\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"


def test_only_a_kept_connection_of_http_1_1_is_answered_by_hand():
    assert possible(Wire())
    assert not possible(Wire(HttpVersion10)) and not possible(Wire(keep_alive=False)) and not possible(Wire(method="HEAD"))


def test_a_whole_answer_is_one_write():
    wire = Wire()
    asyncio.run(Direct(wire, 200, HEADERS, WALL).whole(b"{}"))
    assert wire.written == [HEAD + b"Content-Length: 2\r\n\r\n{}"] and wire.drained == 1


def test_a_streams_head_leaves_with_its_first_frames():
    async def story(wire):
        response = Direct(wire, 200, HEADERS, WALL)
        response.begin()
        await response.write(b"data: 1\n\n")
        await response.write(b"data: 23\n\n")
        await response.write_eof(b"data: [DONE]\n\n")
        await response.write_eof()               # aiohttp's own, when the handler returns
        return response

    wire = Wire()
    response = asyncio.run(story(wire))
    assert wire.written == [HEAD + b"Transfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n", b"a\r\ndata: 23\n\n\r\n",
                            b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"]
    assert response.status == 200 and response.keep_alive


def test_a_stream_without_frames_still_ends():
    async def story(wire):
        response = Direct(wire, 200, HEADERS, WALL)
        response.begin()
        assert await response.prepare(wire) is None
        await response.write_eof()

    wire = Wire()
    asyncio.run(story(wire))
    assert wire.written == [HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"]


def test_a_client_that_left_is_told_of():
    with pytest.raises(ConnectionError):
        asyncio.run(Direct(Wire(closing=True), 200, HEADERS, WALL).whole(b"{}"))


def test_no_header_smuggles_another():
    with pytest.raises(ValueError, match="line break"):
        Direct(Wire(), 200, {"X": "a\r\nY: b"}, WALL)
