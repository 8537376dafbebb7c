"""What sessions remember stays within its bounds and comes back to whoever made it, whatever is said in which order."""
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core import events as ev
from gateway.memory.needs import Needs
from gateway.memory.traces import MAX_TRACES, TTL_S, Notes, Traces

NEEDS = Needs(signatures=True, reasoning=True, always=True)
TURN = st.tuples(st.sampled_from("abc"), st.text(max_size=20), st.lists(st.tuples(st.sampled_from(["c1", "c2", "f.x:0"]), st.text(max_size=5)), max_size=3),
                 st.integers(0, 3), st.floats(0, TTL_S))


def counted(traces):
    return sum(session.measured() for session in traces._sessions.values())


@settings(max_examples=150, deadline=None)
@given(turns=st.lists(TURN, max_size=12), max_bytes=st.integers(200, 2_000))
def test_bounds_hold_and_sizes_are_true(turns, max_bytes):
    traces, now = Traces(max_bytes), 0.0
    for session, said, calls, turn, later in turns:
        now += later
        notes = Notes(NEEDS)
        notes.hear([ev.Reasoning(said), *(ev.ToolCall(i, id_, "f", "{}", extra={"thought_signature": sign}) for i, (id_, sign) in enumerate(calls))])
        traces.remember(session, notes, "p", "m", turn, now)
        assert traces.n_bytes == counted(traces) <= max_bytes
        if any(known.touched == now for known in traces._sessions.values()):     # whoever comes sends the silent ones away
            assert all(now - known.touched <= TTL_S for known in traces._sessions.values())
        assert all(len(known.thoughts) <= MAX_TRACES for known in traces._sessions.values())
        assert all(trace.text.strip() for known in traces._sessions.values() for trace in known.thoughts.values())


@settings(max_examples=100, deadline=None)
@given(turns=st.lists(TURN, min_size=1, max_size=12))
def test_the_last_word_on_a_call_is_what_comes_back(turns):
    traces, last = Traces(), {}
    for session, said, calls, turn, _ in turns:
        notes = Notes(NEEDS)
        notes.hear([ev.Reasoning(said), *(ev.ToolStart(i, id_, "f", extra={"thought_signature": sign}) for i, (id_, sign) in enumerate(calls))])
        traces.remember(session, notes, "p", "m", turn, 0.0)
        for id_, sign in calls:
            if sign:
                last[session, id_] = sign
    for (session, id_), sign in last.items():
        assert traces.find(session, 0.0).signatures[id_].text == sign
