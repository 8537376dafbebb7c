"""How are compressed bodies opened: incrementally, never more than asked for at a time, and never trusting the label?

Upstreams do claim ``br`` or ``gzip`` over a plain body, so the first bytes decide, not the header. Output is made in pieces of
at most ``PIECE`` bytes, so a bomb costs its reader's limit and not the memory of the machine.
"""
import importlib
import sys
import zlib
from collections.abc import Iterator
from typing import Any, Final, Protocol

from gateway.core.errors import GatewayError

PIECE: Final = 65_536                        # bytes made by one step
SNIFF: Final = 16                            # bytes seen before the label is believed
MAX_LAYERS: Final = 3                        # "gzip, br": more than this is nobody's server
# DEFLATE cannot exceed 1032:1; real text stays below 50:1. Only outputs large enough to hurt are judged.
BOMB_BYTES: Final = 16 << 20
BOMB_RATIO: Final = 200
WINDOW: Final = 65_536                       # input that one step sees: what it leaves is copied, so this bounds each copy
MAX_MEMBERS: Final = 64                      # bodies within a body: nobody writes many, and each costs a decoder of its own
QUIET_BYTES: Final = 262_144                 # input in a row that makes nothing; a zstd block (128 KB) has to be whole first

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = (b"\x28\xb5\x2f\xfd", b"\x2a\x4d\x18")     # a frame; a skippable frame has its magic from byte 1 on
_TEXT: Final = bytes(range(0x20, 0x7F)) + b"\t\r\n"


class Opener(Protocol):
    """One coding. ``step`` takes new input (only after ``hungry``) and returns at most a piece; ``done`` = end seen."""
    hungry: bool
    done: bool

    def step(self, data: bytes) -> bytes: ...


class _Zlib:
    """gzip (also of several members) and deflate, with or without its zlib header."""

    def __init__(self, window: int) -> None:
        self.hungry, self.done = True, False
        self._window = window
        self._inflate = zlib.decompressobj(window)
        self._rest = b""
        self._n_members = 1

    def step(self, data: bytes) -> bytes:
        if self._inflate.eof and (self._rest or data):
            self._n_members = _one_more(self._n_members)
            self._inflate = zlib.decompressobj(self._window)      # RFC 1952 2.2: members follow each other
        out = self._inflate.decompress(self._rest + data if self._rest else data, PIECE)
        self._rest = self._inflate.unconsumed_tail or self._inflate.unused_data
        self.done = self._inflate.eof
        if self.done and self._rest[:2] != _GZIP:
            self._rest = b""                                      # padding after the last member
        self.hungry = not self._rest and len(out) < PIECE
        return out


class _Brotli:
    def __init__(self) -> None:
        self.hungry, self.done = True, False
        self._inflate: Any = importlib.import_module("brotli").Decompressor()

    def step(self, data: bytes) -> bytes:
        out: bytes = self._inflate.process(data, output_buffer_limit=PIECE)
        self.done = self._inflate.is_finished()
        self.hungry = bool(self._inflate.can_accept_more_data()) and len(out) < PIECE
        return out


class _Zstd:
    """One frame after the other (RFC 8878 3.1)."""

    def __init__(self) -> None:
        self.hungry, self.done = True, False
        self._rest = b""
        self._inflate = self._new()
        self._n_members = 1

    @staticmethod
    def _new() -> Any:
        module = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
        return importlib.import_module(module).ZstdDecompressor()

    def step(self, data: bytes) -> bytes:
        if self._inflate.eof:
            data, self._rest = self._rest + data, b""
            if data:
                self._n_members = _one_more(self._n_members)
                self._inflate = self._new()
        out: bytes = self._inflate.decompress(data, PIECE) if not self._inflate.eof else b""
        self.done = bool(self._inflate.eof)
        self._rest = self._inflate.unused_data if self.done else b""
        self.hungry = not self._rest if self.done else bool(self._inflate.needs_input)
        return out


def _one_more(n_members: int) -> int:
    if n_members >= MAX_MEMBERS:
        raise GatewayError("bad_reply", f"the body consists of more than {MAX_MEMBERS} compressed parts")
    return n_members + 1


def _opener(coding: str, first: bytes) -> Opener | None:
    """The opener for a body that begins with ``first``; None: it is plain, whatever the label says."""
    if coding in ("gzip", "x-gzip"):
        return _Zlib(31) if first.startswith(_GZIP) else None
    if coding == "zstd":
        return _Zstd() if first[:4] == _ZSTD[0] or first[1:4] == _ZSTD[1] else None
    if _plain(first):
        return None
    if coding == "br":
        return _Brotli()
    # RFC 9110 8.4.1.2: "deflate" is zlib; some servers send it raw
    zlib_header = len(first) > 1 and first[0] & 15 == 8 and (first[0] << 8 | first[1]) % 31 == 0
    return _Zlib(15 if zlib_header else -15)


def _plain(first: bytes) -> bool:
    """Sixteen printable bytes in a row are text: compressed data looks like that once in 10^7."""
    return not first.translate(None, _TEXT)


def _short(coding: str, data: bytes) -> bytes | None:
    """A body too short to sniff that looks like text, and yet is a compressed one (empty brotli is ``;``)."""
    if not data or not _plain(data):
        return None
    for opener in [_Brotli()] if coding == "br" else [_Zlib(-15)] if coding == "deflate" else []:
        try:
            out = opener.step(data)
        except Exception:                                         # no common base; it is text, then
            return None
        return out if opener.done else None
    return None


CODINGS: Final = frozenset({"gzip", "x-gzip", "deflate", "br", "zstd"})


def codings(header: str) -> list[str]:
    """Content-Encoding as a list of codings to open, last applied first. Raises ValueError for one that nobody knows."""
    names = [name for part in header.split(",") if (name := part.strip().lower()) not in ("", "identity")]
    if len(names) > MAX_LAYERS or not CODINGS.issuperset(names):
        raise ValueError("content-encoding")
    return names[::-1]


class Decoded:
    """Opens one coding of one body: ``feed`` yields pieces, ``close`` tells whether the body was whole."""

    __slots__ = ("_coding", "_opener", "_first", "_n_in", "_n_out", "_n_quiet", "_sniffing")

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._opener: Opener | None = None
        self._first = b""
        self._sniffing = True
        self._n_in = self._n_out = self._n_quiet = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Pieces of at most ``PIECE`` bytes. Raises GatewayError("bad_reply") for rubbish and for bombs."""
        if self._sniffing:
            self._first += data
            if len(self._first) < SNIFF:
                return
            data, self._first = self._first, b""
            self._begin(data)
        yield from self._open(data)

    def close(self) -> Iterator[bytes]:
        """The body is over. Raises GatewayError("truncated") when the coding was not."""
        if self._sniffing:
            data, self._first = self._first, b""
            if (whole := _short(self._coding, data)) is not None:
                self._sniffing = False
                yield whole
                return
            self._begin(data)
            yield from self._open(data)
        opener = self._opener
        if opener is not None and not opener.done and self._n_in:
            raise GatewayError("truncated", f"the {self._coding} body ended early")

    def _begin(self, first: bytes) -> None:
        self._sniffing = False
        self._opener = _opener(self._coding, first[:SNIFF])

    def _open(self, data: bytes) -> Iterator[bytes]:
        opener = self._opener
        if opener is None:
            if data:
                yield data
            return
        if len(data) <= WINDOW:
            yield from self._steps(opener, data)
            return
        whole = memoryview(data)
        for at in range(0, len(data), WINDOW):
            yield from self._steps(opener, bytes(whole[at:at + WINDOW]))

    def _steps(self, opener: Opener, data: bytes) -> Iterator[bytes]:
        self._n_in += len(data)
        self._n_quiet += len(data)
        while True:
            try:
                piece = opener.step(data)
            except GatewayError:
                raise
            except Exception as exc:                              # zlib.error, brotli.error, ZstdError: no common base
                raise GatewayError("bad_reply", f"the body is not the {self._coding} that it claims to be") from exc
            self._n_out += len(piece)
            if self._n_out > BOMB_BYTES and self._n_out > self._n_in * BOMB_RATIO:
                raise GatewayError("bad_reply", f"the {self._coding} body grows out of proportion")
            if piece:
                self._n_quiet = 0
                yield piece
            if opener.hungry:
                break
            data = b""
        if self._n_quiet > QUIET_BYTES:
            raise GatewayError("bad_reply", f"the {self._coding} body is long and holds nothing")


class Layers:
    """All codings of a body, opened in turn."""

    __slots__ = ("_layers",)

    def __init__(self, names: list[str]) -> None:
        self._layers = [Decoded(name) for name in names]

    def feed(self, data: bytes) -> Iterator[bytes]:
        return self._through(0, data)

    def close(self) -> Iterator[bytes]:
        for i, layer in enumerate(self._layers):
            for piece in layer.close():
                yield from self._through(i + 1, piece)

    def _through(self, i: int, data: bytes) -> Iterator[bytes]:
        if i == len(self._layers):
            yield data
            return
        for piece in self._layers[i].feed(data):
            yield from self._through(i + 1, piece)


def open_body(data: bytes, header: str, limit: int) -> bytes:
    """A whole body, opened. Raises ValueError (unknown coding), OverflowError (more than ``limit`` bytes), GatewayError."""
    layers = Layers(codings(header))
    out: list[bytes] = []
    n_bytes = 0
    for source in (layers.feed(data), layers.close()):
        for piece in source:
            n_bytes += len(piece)
            if n_bytes > limit:
                raise OverflowError(f"more than {limit} bytes")
            out.append(piece)
    return b"".join(out)
