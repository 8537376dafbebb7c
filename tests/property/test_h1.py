"""However an answer is cut into reads it says the same; whatever comes instead of one, only our own failures come out."""
import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.errors import GatewayError
from gateway.upstream.h1.connection import HEAD_BYTES, Connection
from gateway.upstream.h1.pool import Origin, Pool

Seen = tuple[int, dict[str, str], bytes, str | None]


class Wire(asyncio.Transport):
    """A socket that goes nowhere."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = self.paused = False
        self.sent: list[bytes] = []

    def write(self, data: Any) -> None:
        self.sent.append(bytes(data))

    def writelines(self, parts: Any) -> None:
        self.sent.extend(map(bytes, parts))

    def abort(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


async def heard(reads: list[bytes], ended: bool, method: str = "POST") -> tuple[Seen, Connection, Wire]:
    """What a caller learns when the upstream's bytes come in these reads."""
    pool, wire = Pool(30.0), Wire()
    conn = Connection(Origin("up.test", 80, False, True, None), pool)
    conn.connection_made(wire)
    pool.busy.add(conn)
    waiter = conn.begin(b"POST / HTTP/1.1\r\n\r\n", b"{}", method == "HEAD")
    for data in reads:
        if wire.closed:
            break
        conn.data_received(data)
        assert len(conn._held) <= HEAD_BYTES + len(data)
    if ended and not wire.closed:
        conn.connection_lost(None)
    if not waiter.done():
        pool.close()
        conn.drop()
        return (0, {}, b"", "waiting"), conn, wire
    reply = await waiter
    if reply is None:
        pool.close()
        return (0, {}, b"", conn.failed[0]), conn, wire
    status, headers, got = reply.status, dict(reply.headers), b""
    try:
        async with asyncio.timeout(0):
            while data := await reply.chunk():
                got += data
        failed = None
    except GatewayError as error:
        failed = error.kind
    except TimeoutError:
        failed = "waiting"
        reply.close()
    pool.close()
    return (status, headers, got, failed), conn, wire


def cut(data: bytes, at: list[int]) -> list[bytes]:
    places = sorted({place % (len(data) + 1) for place in at})
    edges = [0, *places, len(data)]
    return [piece for i, j in zip(edges, edges[1:], strict=False) if (piece := data[i:j])]


name = st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,10}", fullmatch=True).map("X-".__add__)
value = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20)
cuts = st.lists(st.integers(0, 5_000), max_size=12)


@st.composite
def answers(draw: Any) -> tuple[bytes, Seen]:
    """A valid answer and what it says."""
    status = draw(st.sampled_from([200, 201, 400, 404, 429, 500, 503]))
    fields = draw(st.dictionaries(name.map(str.lower), value, max_size=5))
    body = draw(st.binary(max_size=400))
    lines = "".join(f"{key}: {text}\r\n" for key, text in fields.items()).encode()
    early = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * draw(st.integers(0, 2))
    head = early + b"HTTP/1.1 %d Words\r\n%b" % (status, lines)
    if draw(st.booleans()):
        fields["content-length"] = str(len(body))
        return head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body), (status, fields, body, None)
    fields["transfer-encoding"] = "chunked"
    pieces = cut(body, draw(cuts))
    extension = draw(st.sampled_from([b"", b";a=b", b";c"]))
    chunks = b"".join(b"%x%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces)
    trailer = draw(st.sampled_from([b"", b"X-Sum: 1\r\n"]))
    return head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n" + trailer + b"\r\n", (status, fields, body, None)


@settings(max_examples=80, deadline=None)
@given(answers(), cuts)
def test_any_split_of_an_answer_says_the_same(answer: tuple[bytes, Seen], at: list[int]) -> None:
    data, expected = answer
    seen, conn, wire = asyncio.run(heard(cut(data, at), False))
    assert seen == expected
    assert conn.reused                               # and the connection was free again at its last byte


@settings(max_examples=60, deadline=None)
@given(answers())
def test_byte_by_byte_too(answer: tuple[bytes, Seen]) -> None:
    data, expected = answer
    assert asyncio.run(heard([data[i:i + 1] for i in range(len(data))], False))[0] == expected


@settings(max_examples=100, deadline=None)
@given(answers(), st.integers(0, 5_000), cuts)
def test_an_answer_that_ends_early_is_never_whole(answer: tuple[bytes, Seen], end: int, at: list[int]) -> None:
    data, expected = answer
    part = data[:end % len(data)]
    (status, _, body, failed), conn, wire = asyncio.run(heard(cut(part, at), True))
    assert failed in ("transport", "truncated") and expected[2].startswith(body)
    assert not conn.reused


ODD = st.one_of(
    st.binary(max_size=300),
    st.lists(st.sampled_from([b"HTTP/1.1 200 OK", b"\r\n", b"\n", b"\r", b"\0", b" ", b":", b"Content-Length", b"Transfer-Encoding",
                              b": ", b"chunked", b"5", b"0", b"abcde", b"ffff", b"Connection: close", b"Upgrade: x", b";", b"HTTP/",
                              b"HTTP/1.1 101 X", b"HTTP/1.1 100 X", b"\xff", b"Keep-Alive: timeout=3"]), max_size=30).map(b"".join))


@st.composite
def spoiled(draw: Any) -> bytes:
    """A valid answer with a few bytes changed, left out or put in."""
    data = bytearray(draw(answers())[0])
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(data)))
        data[place:place + draw(st.integers(0, 3))] = draw(st.sampled_from([b"", b"\r", b"\n", b"\0", b" ", b"0", b"f", b":", b"\xff"]))
    return bytes(data)


@settings(max_examples=300, deadline=None)
@given(st.one_of(ODD, spoiled()), cuts, st.booleans(), st.sampled_from(["POST", "HEAD"]))
def test_garbage_gives_our_failures_and_leaves_nothing_open(data: bytes, at: list[int], ended: bool, method: str) -> None:
    (_, _, _, failed), conn, wire = asyncio.run(heard(cut(data, at), ended, method))
    assert failed in (None, "transport", "truncated", "waiting")
    assert wire.closed or not conn._pool.busy
    assert not conn._pool.busy


@settings(max_examples=200, deadline=None)
@given(spoiled(), cuts)
def test_what_is_read_does_not_depend_on_the_split_even_of_garbage(data: bytes, at: list[int]) -> None:
    whole, split = (asyncio.run(heard(reads, True))[0] for reads in ([data], cut(data, at)))
    # bytes behind a whole answer are noticed only if they come in the same read: then the verdict differs, never the content
    assert whole[:3] == split[:3] or {whole[3], split[3]} & {"transport", "truncated"}
    assert whole[2].startswith(split[2]) or split[2].startswith(whole[2])
