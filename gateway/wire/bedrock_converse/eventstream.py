"""How are AWS's binary event streams framed? Bytes in, whole messages out, whatever the cut; sums are checked, sizes bounded.

A message is: total length, length of its headers, CRC-32 of these eight bytes; headers; payload; CRC-32 of everything before.
https://smithy.io/2.0/aws/amazon-eventstream.html
"""
import functools
from struct import Struct
from struct import error as StructError
from typing import Final
from zlib import crc32

from gateway.core.errors import GatewayError

TYPE: Final = "application/vnd.amazon.eventstream"
MAX_HEADERS: Final = 128 << 10                       # the specification's own bound
Message = tuple[dict[str, str], bytes]               # its string headers, its payload

_PRELUDE: Final = Struct(">III")
_SUM: Final = Struct(">I")
_SHORT: Final = Struct(">H")
_OVERHEAD: Final = 16
# type of a header's value -> its length; 6 (bytes) and 7 (text) say theirs themselves
_FIXED: Final = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
_TEXT: Final = 7
_USUAL: Final = 512                                # bytes of headers that are remembered


class Splitter:
    """Cuts a byte stream into messages. Cost is linear in the bytes for any cut."""

    __slots__ = ("_limit", "_held", "_wanted")

    def __init__(self, max_frame_bytes: int) -> None:
        self._limit = max_frame_bytes
        self._held = bytearray()
        self._wanted = _PRELUDE.size                 # bytes without which nothing can be decided

    @property
    def idle(self) -> bool:
        return not self._held

    def feed(self, data: bytes) -> list[Message]:
        """The messages that this read completes. Raises bad_reply on a wrong sum, a wrong length or too large a message."""
        held = self._held
        held += data
        out: list[Message] = []
        at = 0
        while len(held) - at >= self._wanted:
            if self._wanted == _PRELUDE.size:
                self._wanted = self._length(held, at)
                continue
            out.append(_message(bytes(held[at:at + self._wanted])))
            at += self._wanted
            self._wanted = _PRELUDE.size
        if at:
            del held[:at]
        return out

    def _length(self, held: bytearray, at: int) -> int:
        total, headers, told = _PRELUDE.unpack_from(held, at)
        if crc32(held[at:at + 8]) != told:
            raise broken("a checksum is wrong")
        if total < headers + _OVERHEAD or headers > MAX_HEADERS:
            raise broken("a length is wrong")
        if total > self._limit + _OVERHEAD:
            raise GatewayError("bad_reply", f"The provider sent a message of more than {self._limit} bytes.")
        return int(total)


def _message(data: bytes) -> Message:
    _, n_headers, _ = _PRELUDE.unpack_from(data)
    end = len(data) - _SUM.size
    if crc32(data[:end]) != _SUM.unpack_from(data, end)[0]:
        raise broken("a checksum is wrong")
    begin = _PRELUDE.size + n_headers
    return _usual(data[_PRELUDE.size:begin]) if n_headers <= _USUAL else _headers(data[_PRELUDE.size:begin]), data[begin:end]


@functools.lru_cache(maxsize=256)
def _usual(data: bytes) -> dict[str, str]:
    """The headers of nearly all messages of a stream are the same bytes; what is returned is shared and not changed."""
    return _headers(data)


def _headers(data: bytes) -> dict[str, str]:
    """The headers that are text; all that matter are."""
    found: dict[str, str] = {}
    at = 0
    try:
        while at < len(data):
            n = data[at]
            name, kind = data[at + 1:at + 1 + n].decode("utf-8", "replace"), data[at + 1 + n]
            at += n + 2
            size = _FIXED.get(kind)
            if size is None:
                if kind not in (6, _TEXT):
                    raise broken("a header has an unknown type")
                size = _SHORT.unpack_from(data, at)[0]
                at += _SHORT.size
            if at + size > len(data):
                raise broken("a header is cut off")
            if kind == _TEXT:
                found[name] = data[at:at + size].decode("utf-8", "replace")
            at += size
    except (IndexError, StructError):
        raise broken("a header is cut off") from None
    return found


def message(headers: dict[str, str], payload: bytes) -> bytes:
    """One message, written: for scripted upstreams."""
    head = b"".join([bytes([len(name)]) + name.encode() + bytes([_TEXT]) + _SHORT.pack(len(value.encode())) + value.encode()
                     for name, value in headers.items()])
    prelude = _PRELUDE.pack(len(head) + len(payload) + _OVERHEAD, len(head), 0)[:8]
    body = prelude + _SUM.pack(crc32(prelude)) + head + payload
    return body + _SUM.pack(crc32(body))


def broken(why: str) -> GatewayError:
    return GatewayError("bad_reply", f"The provider's event stream is damaged: {why}.")
