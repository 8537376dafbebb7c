"""Event streams are cut into events by the standard's rules, whatever the cut of the bytes."""
import pytest

from gateway.core.errors import GatewayError
from gateway.wire.sse import Splitter, frame, heading

LIMIT = 1000


def split(*reads: bytes, limit: int = LIMIT) -> list[tuple[str | None, bytes]]:
    splitter = Splitter(limit)
    out = []
    for read in reads:
        out += splitter.feed(read)
    return out + splitter.close()


def one_by_one(data: bytes) -> list[tuple[str | None, bytes]]:
    return split(*[data[i:i + 1] for i in range(len(data))])


STREAMS = {
    "line feeds": (b"data: a\n\ndata: b\n\n", [(None, b"a"), (None, b"b")]),
    "carriage returns and line feeds": (b"data: a\r\n\r\ndata: b\r\n\r\n", [(None, b"a"), (None, b"b")]),
    "carriage returns alone": (b"data: a\r\rdata: b\r\r", [(None, b"a"), (None, b"b")]),
    "all three mixed": (b"data: a\r\n\rdata: b\n\r\ndata: c\r\r", [(None, b"a"), (None, b"b"), (None, b"c")]),
    "no space after the colon": (b"data:a\n\ndata:  b\n\n", [(None, b"a"), (None, b" b")]),
    "comments and fields that mean nothing here": (b": hi\n\nid: 1\nretry: 5\ndata: a\nfoo\nbar: x\n\n", [(None, b"a")]),
    "several data lines": (b"data: {\ndata: }\n\n", [(None, b"{\n}")]),
    "a name": (b"event: error\ndata: a\n\nevent:\ndata: b\n\n", [("error", b"a"), (None, b"b")]),
    "a name alone is no event": (b"event: ping\n\ndata: a\n\n", [(None, b"a")]),
    "empty data is no event": (b"data:\n\ndata: \n\ndata\n\ndata: a\n\n", [(None, b"a")]),
    "a byte order mark": (b"\xef\xbb\xbfdata: a\n\n", [(None, b"a")]),
    "more blank lines than needed": (b"\n\n\ndata: a\n\n\n\n\ndata: b\n\n\n", [(None, b"a"), (None, b"b")]),
    "no blank line at the end": (b"data: a\n\ndata: b", [(None, b"a"), (None, b"b")]),
    "one line end at the end": (b"data: a\n\ndata: b\r\n", [(None, b"a"), (None, b"b")]),
    "other line ends are text": ("data: L\u2028P\u2029N\u0085F\x0c\n\n".encode(), [(None, "L\u2028P\u2029N\u0085F\x0c".encode())]),
    "a field in front of which stands a space is another field": (b" data: a\n\ndata: b\n\n", [(None, b"b")]),
    "nothing": (b"", []),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_read(name):
    data, events = STREAMS[name]
    assert split(data) == events
    assert one_by_one(data) == events


@pytest.mark.parametrize("name", STREAMS)
def test_every_single_cut_gives_the_same(name):
    data, events = STREAMS[name]
    for at in range(len(data)):
        assert split(data[:at], data[at:]) == events


def test_a_cut_inside_a_character_joins_again():
    data = "data: 😀\n\n".encode()
    assert one_by_one(data) == [(None, "😀".encode())]


@pytest.mark.parametrize("cut", [1, 7, 5000])
def test_an_event_above_the_limit_is_refused(cut):
    data = b"data: a\n\ndata: " + b"x" * LIMIT + b"\n\n"
    with pytest.raises(GatewayError) as refused:
        split(*[data[i:i + cut] for i in range(0, len(data), cut)])
    assert refused.value.kind == "bad_reply"


@pytest.mark.parametrize("cut", [1, 7, 5000])
def test_an_event_at_the_limit_is_taken(cut):
    data = b"data: " + b"x" * (LIMIT - 6) + b"\n\n"
    assert len(split(*[data[i:i + cut] for i in range(0, len(data), cut)])) == 1


def test_many_events_may_be_larger_than_the_limit_together():
    assert len(split(b"data: 0123456789\n\n" * 200)) == 200


def test_what_is_written_is_read_again():
    assert split(frame(b"{}"), frame(b"[]", "error")) == [(None, b"{}"), ("error", b"[]")]


@pytest.mark.parametrize("name", ["a\nb", "a\r\rdata: x", "\ud800", "\x85", "", "Öl"])
def test_what_can_be_no_name_of_an_event_is_left_out(name):
    """Upstreams say it, and a line end in it would begin an event of theirs in our stream."""
    assert heading(name) == b"data: " and heading("response.done") == b"event: response.done\ndata: "
