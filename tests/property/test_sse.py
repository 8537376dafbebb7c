"""Any stream of events, framed in any way and cut anywhere, is read as the same events."""
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.errors import GatewayError
from gateway.wire.sse import Splitter

LIMIT = 400
LINE_ENDS = [b"\n", b"\r\n", b"\r"]

texts = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1, max_size=30)
noise = st.lists(st.sampled_from([b": comment", b"id: 7", b"retry: 10", b"unknown", b":"]), max_size=2)


@st.composite
def streams(draw):
    """(bytes, the events in them)"""
    out, events = [], []
    if draw(st.booleans()):
        out.append(b"\xef\xbb\xbf")
    for lines in draw(st.lists(st.lists(texts, min_size=1, max_size=3), max_size=6)):
        name = draw(st.sampled_from([None, "error", "ping"]))
        end = draw(st.sampled_from(LINE_ENDS))
        written = [*draw(noise), *([b"event: " + name.encode()] if name else [])]
        written += [draw(st.sampled_from([b"data: ", b"data:" if not line.startswith(" ") else b"data: "])) + line.encode()
                    for line in lines]
        out += [line + end for line in written] + [end]
        events.append((name, "\n".join(lines).encode()))
    return b"".join(out), events


def read(data, cuts):
    splitter, out, at = Splitter(LIMIT), [], 0
    for cut in [*cuts, len(data)]:
        out += splitter.feed(data[at:cut])
        at = cut
    return out + splitter.close()


@st.composite
def cut_streams(draw):
    data, events = draw(streams())
    return data, events, sorted(draw(st.lists(st.integers(0, len(data)), max_size=12)))


@given(cut_streams())
@settings(max_examples=200, deadline=None)
def test_any_cut_gives_the_events_that_were_written(case):
    data, events, cuts = case
    assert read(data, cuts) == events


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=6))
@settings(max_examples=150, deadline=None)
def test_any_bytes_give_the_same_for_every_cut_or_our_error(data, cuts):
    def outcome(cuts):
        try:
            return read(data, cuts)
        except GatewayError as error:
            return error.kind

    assert outcome(sorted(min(cut, len(data)) for cut in cuts)) == outcome(range(len(data)))
