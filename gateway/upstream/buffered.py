"""What of a body has arrived? Taken out of aiohttp's reader in one step.

``StreamReader.readany`` asks the protocol for more after each piece that it takes, and a piece is a chunk of chunked encoding: for
a stream of small frames that costs more than everything else about it (3 µs each). Here all is taken at once, and the protocol is
asked once, and only if it had been told to pause. Where a later aiohttp looks otherwise inside, ``readany`` does it all.
"""
from typing import Any, Final

from aiohttp import StreamReader
from aiohttp.base_protocol import BaseProtocol

_INSIDE: Final = {"_buffer", "_buffer_offset", "_size", "_cursor", "_eof", "_exception", "_http_chunk_splits", "_protocol"}
_KNOWN: Final = (_INSIDE <= set(getattr(StreamReader, "__slots__", ())) and hasattr(StreamReader, "_wait")
                 and "_reading_paused" in getattr(BaseProtocol, "__slots__", ()))


async def read(reader: Any) -> bytes:
    """The next read, waited for; b"" at the end. Raises what the reader was told."""
    if not _KNOWN or type(reader) is not StreamReader or reader._buffer_offset:
        data: bytes = await reader.readany()
        return data
    if reader._exception is not None:
        raise reader._exception
    while not reader._buffer and not reader._eof:
        await reader._wait("read")
    return _taken(reader)


def _taken(reader: Any) -> bytes:
    buffer = reader._buffer
    if len(buffer) == 1:
        data: bytes = buffer.popleft()
    else:
        data = b"".join(buffer)
        buffer.clear()
    reader._size = 0
    reader._cursor += len(data)
    if reader._http_chunk_splits:
        reader._http_chunk_splits.clear()
    if reader._protocol._reading_paused:
        reader._protocol.resume_reading()
    return data
