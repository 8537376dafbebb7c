"""Is this read one request for a door of ours, as plain as nearly all are? Then no more is made of it than a handler asks for.

Plain: HTTP/1.1 with a length, on a connection that stays, nothing said twice, no wishes about the connection, and a whole head.
llhttp in its strict mode finds it well formed, as it does for aiohttp, whose parser and request objects cost 40 µs of a request's
280. Whatever else comes goes to aiohttp, from its first byte on.
"""
from typing import TYPE_CHECKING, Final

from aiohttp import HttpVersion11, StreamReader
from aiohttp.http import StreamWriter
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from multidict import CIMultiDict

if TYPE_CHECKING:
    from gateway.server.succession import Succession

HEAD_BYTES: Final = 8_190                    # aiohttp's bound for a line; here for all of them
START: Final = b"POST /v1/"
_END: Final = b"\r\n\r\n"
# Fields that say something about the connection or the framing of the body, beside Content-Length.
_ODD: Final = frozenset({b"transfer-encoding", b"upgrade", b"expect", b"te", b"trailer", b"http2-settings", b"proxy-connection"})


class Plain:
    """What our doors ask of aiohttp's ``BaseRequest``. ``whole``: the body, where it has come; else see ``content``."""

    __slots__ = ("raw_path", "headers", "content_length", "whole", "content", "protocol", "_task")
    method = "POST"
    version = HttpVersion11
    keep_alive = True

    def __init__(self, raw_path: str, headers: CIMultiDict[str], content_length: int, whole: bytes | None, content: StreamReader,
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


class Head:
    """Reads heads, one connection's after the other."""

    __slots__ = ("on_header", "on_url", "_fields", "_paths", "_parser", "_n_begun")

    def __init__(self) -> None:
        self._fields: dict[bytes, bytes] = {}
        self._paths: list[bytes] = []
        self.on_header = self._fields.setdefault             # no Python runs for a field
        self.on_url = self._paths.append
        self._n_begun = 0
        self._parser = HttpRequestParser(self)

    def on_message_begin(self) -> None:
        self._n_begun += 1

    def read(self, data: bytes) -> tuple[str, CIMultiDict[str], int, int] | None:
        """(path, headers, length of the body, where it begins) of a read that begins with a plain request; None: it does not."""
        end = data.find(_END, 0, HEAD_BYTES) + len(_END)
        if end < len(_END):
            return None
        fields, paths, parser = self._fields, self._paths, self._parser
        fields.clear()
        paths.clear()
        self._n_begun = 0
        try:
            parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            return None
        if self._n_begun != 1 or len(paths) != 1 or parser.get_http_version() != "1.1":
            return None
        names = {name.lower() for name in fields}
        if len(names) != data.count(b"\n", 0, end) - 2 or not names.isdisjoint(_ODD):
            return None                                      # something comes twice
        headers = CIMultiDict([(name.decode("ascii"), value.decode("utf-8", "surrogateescape")) for name, value in fields.items()])
        length = headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or headers.get("Connection", "keep-alive").lower() != "keep-alive":
            return None
        n_body = int(length)
        if len(data) != end + n_body:
            if len(data) > end + n_body:
                return None
            self._parser = HttpRequestParser(self)           # the rest of the body is counted, not read by a parser
        return paths[0].decode("ascii", "replace"), headers, n_body, end
