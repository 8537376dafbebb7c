"""Reading what has arrived: all of it at once, in order, once; and what the reader was told comes out."""
import asyncio

import pytest
from aiohttp import ClientPayloadError, StreamReader
from aiohttp.base_protocol import BaseProtocol

from gateway.upstream import buffered


class Protocol(BaseProtocol):
    """Counts how often it is asked to go on."""

    __slots__ = ("asked", "transport")

    def __init__(self, loop):
        super().__init__(loop)
        self.asked = 0
        self.transport = object()

    def pause_reading(self):
        self._reading_paused = True

    def resume_reading(self, resume_parser=True):
        self._reading_paused = False
        self.asked += 1


def told(story, limit=65_536):
    async def main():
        loop = asyncio.get_running_loop()
        protocol = Protocol(loop)
        return await story(StreamReader(protocol, limit, loop=loop), protocol)

    return asyncio.run(main())


def test_everything_that_has_arrived_is_one_read_and_nobody_is_asked_for_more():
    async def story(reader, protocol):
        for piece in (b"a", b"b", b"c"):
            reader.begin_http_chunk_receiving()
            reader.feed_data(piece)
            reader.end_http_chunk_receiving()
        assert await buffered.read(reader) == b"abc"
        assert protocol.asked == 0 and not reader._http_chunk_splits

    told(story)


def test_a_read_waits_for_bytes_and_for_the_end():
    async def story(reader, protocol):
        loop = asyncio.get_running_loop()
        loop.call_soon(reader.feed_data, b"late")
        assert await buffered.read(reader) == b"late"
        loop.call_soon(reader.feed_eof)
        assert await buffered.read(reader) == b"" and reader.at_eof()

    told(story)


def test_a_sender_that_was_paused_may_go_on_when_its_bytes_are_taken():
    async def story(reader, protocol):
        reader.feed_data(b"x" * 20)
        assert protocol._reading_paused
        assert len(await buffered.read(reader)) == 20 and protocol.asked == 1
        reader.feed_data(b"y")
        assert await reader.readany() == b"y"     # the reader's own counts are right

    told(story, limit=4)


def test_what_the_reader_was_told_is_raised():
    async def story(reader, protocol):
        reader.set_exception(ClientPayloadError("cut"))
        with pytest.raises(ClientPayloadError):
            await buffered.read(reader)

    told(story)


def test_a_reader_of_another_kind_is_read_as_it_wants():
    class Other:
        async def readany(self):
            return b"own"

    async def story(reader, protocol):
        assert await buffered.read(Other()) == b"own"

    told(story)
