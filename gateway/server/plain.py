"""Is this read one request for a door of ours, as plain as nearly all are? Then no more is made of it than a handler asks for.

Plain: HTTP/1.1 with a length, on a connection that stays, nothing said twice, no wishes about the connection, and a whole head.
llhttp in its strict mode finds it well formed, as it does for aiohttp, whose parser and request objects cost 40 µs of a request's
280. Whatever else comes goes to aiohttp, from its first byte on.
"""
from typing import TYPE_CHECKING, Final

from aiohttp import HttpVersion11, StreamReader
from aiohttp.http import StreamWriter
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from multidict import CIMultiDict, CIMultiDictProxy

if TYPE_CHECKING:
    from gateway.server.succession import Succession

HEAD_BYTES: Final = 8_190                    # aiohttp's bound for a line; here for all of them
START: Final = b"POST /v1/"
_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"ength: "                  # of Content-Length, whose other letters may be large or small
_FIELD: Final = b"\ncontent-length: "
_STAYS: Final = b"keep-alive"
MAX_DIGITS: Final = 18
# Fields that say something about the connection or the framing of the body, beside Content-Length.
# And one that aiohttp refuses: of a handshake that nobody speaks any more.
_ODD: Final = frozenset({b"transfer-encoding", b"upgrade", b"expect", b"te", b"trailer", b"http2-settings", b"proxy-connection",
                         b"sec-websocket-key1"})
_NEEDED: Final = frozenset({b"host", b"content-length"})
MAX_FIELDS: Final = 128                      # aiohttp's bound


class Plain:
    """What our doors ask of aiohttp's ``BaseRequest``. ``whole``: the body, where it has come; else see ``content``."""

    __slots__ = ("raw_path", "headers", "content_length", "whole", "content", "protocol", "_task")
    method = "POST"
    version = HttpVersion11
    keep_alive = True
    _task: object                                            # aiohttp: who answers it

    def __init__(self, raw_path: str, headers: CIMultiDictProxy[str], content_length: int, whole: bytes | None, content: StreamReader,
                 protocol: "Succession") -> None:
        self.raw_path = raw_path
        self.headers = headers
        self.content_length = content_length
        self.whole = whole
        self.content = content
        self.protocol = protocol

    @property
    def transport(self) -> object:
        return self.protocol.transport

    @property
    def writer(self) -> StreamWriter:
        return StreamWriter(self.protocol, self.protocol._loop)

    def _cancel(self, exc: BaseException) -> None:
        """aiohttp: the connection is lost."""
        self.content.set_exception(exc)

    def _finish(self) -> None:
        """aiohttp: it was answered. There are no uploads to tidy up."""


Said = tuple[str, CIMultiDictProxy[str]]
Read = tuple[str, CIMultiDictProxy[str], int, int]           # path, headers without the length, the length, where the body begins


class Head:
    """Reads heads, one connection's after the other.

    Most of a client differ in the length of the body at most: what the last one said is known by its other bytes.
    """

    __slots__ = ("on_header", "on_url", "_fields", "_paths", "_n_begun", "_last", "_said")

    def __init__(self) -> None:
        self._fields: dict[bytes, bytes] = {}
        self._paths: list[bytes] = []
        self.on_header = self._fields.setdefault             # no Python runs for a field
        self.on_url = self._paths.append
        self._n_begun = 0
        self._last = b""                                     # head, without the digits of its length …
        self._said: Said | None = None                       # … and what it said

    def on_message_begin(self) -> None:
        self._n_begun += 1

    def read(self, data: bytes) -> Read | None:
        """Of a read that begins with a plain request; None: it does not."""
        end = data.find(_END, 0, HEAD_BYTES) + len(_END)
        at = data.find(_LENGTH, 0, end) + len(_LENGTH)
        after = data.find(b"\r", at, end)
        if end < len(_END) or not 0 < after - at <= MAX_DIGITS or not data[at:after].isdigit() \
                or data[at - len(_FIELD):at].lower() != _FIELD:
            return None
        n_body = int(data[at:after])
        if len(data) > end + n_body:
            return None
        rest = data[:at] + data[after:end]
        if rest != self._last or self._said is None:
            self._last, self._said = rest, self._parsed(data[:end])
            self._fields.clear()                             # thousands of connections hold a head each
            self._paths.clear()
            if self._said is None:
                return None
        path, headers = self._said
        return path, headers, n_body, end

    def _parsed(self, head: bytes) -> Said | None:
        fields, paths = self._fields, self._paths
        self._n_begun = 0
        parser = HttpRequestParser(self)                     # the body is counted, so its parser is of no more use then
        try:
            parser.feed_data(head)
        except (HttpParserError, HttpParserUpgrade):
            return None
        named = {name.lower(): value.strip(b" \t") for name, value in fields.items()}
        if self._n_begun != 1 or len(paths) != 1 or parser.get_http_version() != "1.1" or not _NEEDED <= named.keys() \
                or len(named) != head.count(b"\n") - 2 or len(named) > MAX_FIELDS \
                or named.get(b"connection", _STAYS).lower() != _STAYS or not named.keys().isdisjoint(_ODD):
            return None                                      # or something comes twice
        del named[b"content-length"]
        headers = CIMultiDict([(name.decode("ascii"), value.decode("utf-8", "surrogateescape")) for name, value in named.items()])
        return paths[0].decode("ascii", "replace"), CIMultiDictProxy(headers)
