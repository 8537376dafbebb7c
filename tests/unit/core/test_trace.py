"""A request's place in a trace: the caller's word where it is well-formed, else a trace of our own."""
import pytest

from gateway.core.trace import begun

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.mark.parametrize(("flags", "sampled"), [("01", True), ("00", False), ("03", True)])
def test_the_caller_decides_for_its_trace(flags, sampled):
    trace = begun(f"00-{TRACE}-{PARENT}-{flags}", "vendor=1", 0.0 if sampled else 1.0)
    assert (trace.trace_id, trace.parent_id, trace.sampled, trace.state) == (TRACE, PARENT, sampled, "vendor=1")
    assert trace.headers("00000000000000aa") == {"traceparent": f"00-{TRACE}-00000000000000aa-0{int(sampled)}", "tracestate": "vendor=1"}


@pytest.mark.parametrize("parent", ["", "nonsense", f"00-{'0' * 32}-{PARENT}-01", f"00-{TRACE}-{'0' * 16}-01", f"ff-{TRACE}-{PARENT}-01",
                                    f"00-{TRACE.upper()}-{PARENT}-01", f"00-{TRACE}-{PARENT}-01-more", f"00-{TRACE}-{PARENT}"])
def test_what_is_malformed_begins_a_trace_of_its_own(parent):
    trace = begun(parent, "vendor=1", 1.0)
    assert trace.trace_id != TRACE and not trace.parent_id and not trace.state and trace.sampled
    assert len(trace.trace_id) == 32 and len(trace.span_id) == 16


def test_a_later_version_may_say_more():
    assert begun(f"01-{TRACE}-{PARENT}-01-more", "", 1.0).trace_id == TRACE


def test_only_a_share_of_what_begins_here_is_sampled():
    assert not any(begun("", "", 0.0).sampled for _ in range(50))
    found = sum(begun("", "", 0.5).sampled for _ in range(1_000))
    assert 350 < found < 650


@pytest.mark.parametrize("state", ["x" * 513, "a=1\r\nEvil: 1", "a=\x00"])
def test_a_state_that_is_no_header_is_dropped(state):
    assert begun(f"00-{TRACE}-{PARENT}-01", state, 1.0).state == ""
