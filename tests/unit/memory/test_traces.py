"""What a session must not forget, and what it may: bounded by time, number and size."""
import pytest

from gateway.core import events as ev
from gateway.memory import traces as subject
from gateway.memory.needs import REASONING, Needs, bare, needs_of
from gateway.memory.traces import TTL_S, Notes, Traces
from gateway.wire.openai_responses.schema import clamped

BOTH = Needs(signatures=True, reasoning=True, always=True)


def notes(*calls, said="because", needs=BOTH):
    made = Notes(needs)
    made.hear([ev.Reasoning(said[:3]), ev.Reasoning(said[3:]), ev.Text("hi")])
    made.hear([ev.ToolCall(i, id_, "f", "{}", extra={"thought_signature": sign} if sign else None)
               for i, (id_, sign) in enumerate(calls)])
    return made


def remember(traces, session="s", *calls, now=0.0, turn=0, **more):
    traces.remember(session, notes(*calls, **more), "p", "m", turn, now)


# ---------------------------------------------------------------- which models
@pytest.mark.parametrize(("wire", "model", "wanted"), [
    ("gemini", "gemini-3-pro", Needs(signatures=True)),
    ("openai-chat", "google/gemini-3-flash", Needs(signatures=True)),
    ("openai-chat", "deepseek-v4-pro", Needs(reasoning=True, always=True)),
    ("openai-chat", "deepseek-ai/DeepSeek-V3.2", Needs(reasoning=True, always=True)),
    ("openai-chat", "moonshotai/kimi-k2-thinking:free", Needs(reasoning=True)),
    ("openai-chat", "kimi-k2.5", Needs(reasoning=True)),
    ("openai-chat", "xiaomi/mimo-v2.5", Needs(reasoning=True, always=True)),
    ("openai-chat", "glm-4.6", Needs(reasoning=True)),
    ("openai-chat", "qwen3-235b-a22b-thinking-2507", Needs(reasoning=True)),
    ("openai-chat", "deepseek-r1", None),
    ("openai-chat", "deepseek-reasoner", None),
    ("openai-chat", "gpt-5", None),
    ("openai-chat", "m", None),
    ("anthropic", "kimi-k2.5", None),
])
def test_few_models_want_something_back(wire, model, wanted):
    assert needs_of(wire, model) == wanted


def test_every_fact_has_a_reason_and_a_source():
    assert all(row.why and row.source.startswith("https://") for row in REASONING)


def test_a_model_has_one_name_whoever_serves_it():
    assert bare("deepseek-ai/DeepSeek-V4:free") == bare("deepseek-v4")


# ---------------------------------------------------------------- what is kept
def test_reasoning_and_signatures_go_by_the_call():
    traces = Traces()
    remember(traces, "s", ("c1", "sig"), ("c2", ""))
    known = traces.find("s", 1.0)
    assert known.signatures["c1"].text == "sig" and "c2" not in known.signatures
    assert known.thoughts["c1"].text == known.thoughts["c2"].text == "because"
    assert not known.turns, "a turn with calls is found by them"


def test_a_plain_turn_goes_by_its_place():
    traces = Traces()
    remember(traces, "s", turn=3)
    assert traces.find("s", 0.0).turns[3].text == "because"


def test_a_call_is_found_by_the_ids_that_formats_write():
    traces = Traces()
    remember(traces, "s", ("functions.f:0", "sig"), ("c" * 80, "long"))
    known = traces.find("s", 0.0)
    assert known.signatures["functions_f_0"].text == "sig"
    assert clamped("c" * 80) in known.signatures


@pytest.mark.parametrize("said", ["", "   \n\n"])
def test_nothing_is_kept_of_a_turn_that_thought_nothing(said):
    traces = Traces()
    remember(traces, "s", ("c1", ""), said=said)
    assert len(traces) == 0 and traces.n_bytes == 0


def test_what_the_model_does_not_want_is_not_kept():
    traces = Traces()
    remember(traces, "s", ("c1", "sig"), needs=Needs(signatures=True))
    known = traces.find("s", 0.0)
    assert known.signatures and not known.thoughts


def test_half_a_thought_is_not_kept(monkeypatch):
    monkeypatch.setattr(subject, "MAX_CHARS", 5)
    assert notes(said="because of that").reasoning == ""


def test_sessions_know_nothing_of_each_other():
    traces = Traces()
    remember(traces, "s", ("c1", "sig"))
    assert traces.find("t", 0.0) is None


# ---------------------------------------------------------------- bounds
def test_a_session_is_forgotten_after_half_an_hour_of_silence():
    traces = Traces()
    remember(traces, "s", ("c1", "sig"))
    assert traces.find("s", TTL_S) is not None, "and being asked for keeps it alive"
    assert traces.find("s", 2 * TTL_S) is not None
    assert traces.find("s", 3 * TTL_S + 1) is None
    assert len(traces) == 0 and traces.n_bytes == 0


def test_silent_sessions_leave_with_the_next_that_comes():
    traces = Traces()
    remember(traces, "s", ("c1", "sig"))
    remember(traces, "t", ("c1", "sig"), now=TTL_S + 1)
    assert len(traces) == 1


def test_the_session_that_was_silent_longest_goes_first(monkeypatch):
    traces = Traces()
    traces._sessions.limit = 2
    for now, session in enumerate("abac"):
        remember(traces, session, (session, "sig"), now=float(now))
    assert [session for session in "abc" if traces.find(session, 5.0)] == ["a", "c"]
    assert traces.n_bytes == sum(known.measured() for known in traces._sessions.values())


def test_all_sessions_together_are_bounded_by_size():
    traces = Traces(max_bytes=1_000)
    for now in range(9):
        remember(traces, f"s{now}", said="x" * 300, now=float(now))
    assert 0 < traces.n_bytes <= 1_000
    remember(traces, "huge", said="x" * 2_000)
    assert traces.find("huge", 0.0) is None and traces.n_bytes >= 0


def test_a_session_is_bounded_by_number(monkeypatch):
    monkeypatch.setattr(subject, "MAX_TRACES", 3)
    traces = Traces()
    for n in range(9):
        remember(traces, "s", (f"c{n}", "sig"), turn=n)
        remember(traces, "s", turn=n)
    known = traces.find("s", 0.0)
    assert list(known.signatures) == ["c6", "c7", "c8"] and list(known.turns) == [6, 7, 8]
