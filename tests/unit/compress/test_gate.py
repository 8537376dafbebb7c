"""An edit that says less is discarded, and the reason is told; an engine that fails leaves nothing behind."""
import pytest

from gateway.compress import gate, plan
from gateway.compress.segment import Edit, Segment
from tests.unit.compress.talks import LINES, answer, bash, body, compressed, stage, user


def judged(before, after, **more):
    return gate.verdict(Edit(Segment((), 0, "tool", before), after, **more))


PLAIN = "one line\nanother line of words\n"


@pytest.mark.parametrize(("before", "after", "reason"), [
    ("short", "longer than it was", gate.SMALLER),
    ("words", " ", gate.SMALLER),
    (PLAIN + "port 8431 is taken", PLAIN, gate.NUMBERS),
    (PLAIN + "it costs 1.50 today", PLAIN + "costs 1.5", gate.NUMBERS),
    (PLAIN + '"name": "x"', PLAIN, gate.NAMES),
    (PLAIN + "see src/app/reader.py there", PLAIN, gate.NAMES),
    (PLAIN + "at https://example.org/a there", PLAIN, gate.NAMES),
    (PLAIN + "with mode=fast in it", PLAIN, gate.NAMES),
    (PLAIN + "call `reader.start` first", PLAIN, gate.CODE),
    ("```\ncode here\n\n\nmore\n```\nwords", "```\ncode here\n\nmore\n```\n", gate.CODE),
    ("def a():\n    return b\nc = {\n}\nwords;", "def a():\n    return b\nc = {\n}", gate.CODE),
    ("diff\n@@ -1,2 +1,2 @@\n-a\n+b\n c\nwords and words", "diff\n@@ -1,2 +1,2 @@\n-a\n+b\nwords", gate.HUNK),
    (PLAIN + "the build failed", PLAIN, gate.WORDS),
    (PLAIN + "you must not do that", PLAIN, gate.WORDS),
])
def test_what_matters_may_not_be_lost(before, after, reason):
    assert judged(before, after) == reason


def test_words_may_be_lost():
    assert judged(PLAIN + "some more words", PLAIN) == ""


def test_what_stands_elsewhere_is_not_lost():
    assert judged(PLAIN + "port 8431 is taken", PLAIN, sources=("the port 8431",)) == ""


def test_noise_may_lose_its_numbers_but_no_error():
    assert judged(PLAIN + "test 4 PASSED", PLAIN, noise=frozenset({"test 4 PASSED"})) == ""
    assert judged(PLAIN + "test 4 failed", PLAIN, noise=frozenset({"test 4 failed"})) == gate.WORDS


def test_a_notation_must_be_reversible():
    assert judged("a  b  c", "a b c", canon=str.split) == ""
    assert judged("a  b  c", "a b", canon=str.split) == gate.NOTATION
    assert judged("a  b", "a b", canon=int) == gate.NOTATION


def forgetful(talk):
    yield Edit(talk.segments[1], "words")
    yield Edit(talk.segments[2], "fine")


def broken(talk):
    yield Edit(talk.segments[2], "fine", holds=(talk.segments[1],))
    raise RuntimeError("no")


TALK = body(user(), bash("a", "./x", "words\nport 8431"), bash("b", "./y", "fine and more words"), user())


def test_what_an_engine_forgets_is_discarded_and_counted_edit_by_edit():
    texts, outcome = compressed(TALK, engines=(plan.Engine("forgetful", "lossless", True, forgetful),))
    assert texts[1:3] == ["words\nport 8431", "fine"]
    assert stage(outcome, "forgetful").discarded == {gate.NUMBERS: 1} and stage(outcome, "forgetful").edits == 1


def test_of_an_engine_that_fails_nothing_stays():
    texts, outcome = compressed(TALK, engines=(plan.Engine("broken", "lossless", True, broken),))
    assert texts[2] == "fine and more words" and not outcome.changed
    assert stage(outcome, "broken").discarded == {plan.FAILED: 1} and stage(outcome, "broken").edits == 0


@pytest.mark.parametrize(("causal", "reason"), [(True, gate.NUMBERS), (False, plan.FROZEN)])
def test_before_a_cache_marker_only_engines_that_look_back_at_nothing_change_anything(causal, reason):
    raw = TALK.replace(b'"content": "words', b'"cache_control": {"type": "ephemeral"}, "content": "words')
    texts, outcome = compressed(raw, engines=(plan.Engine("forgetful", "lossless", causal, forgetful),))
    assert stage(outcome, "forgetful").discarded == {reason: 1} and texts[2] == "fine"


def test_nobody_changes_the_last_turn():
    def eager(talk):
        yield Edit(talk.segments[-1], "Go")
    texts, outcome = compressed(TALK, engines=(plan.Engine("eager", "lossless", True, eager),))
    assert texts[-1] == "Go on." and stage(outcome, "eager").discarded == {plan.FROZEN: 1}


def test_what_was_compressed_by_a_gateway_before_this_one_stays_as_it_is():
    talk = (user(), bash("a", "./one", LINES), bash("b", "./two", "x\n\n" + LINES), answer("One.  \nTwo"), user())
    texts, _ = compressed(body(*talk))
    again, outcome = compressed(body(user(), *[bash(str(i), "./x", text) for i, text in enumerate(texts[1:3])], answer("One.  \nTwo"), user()))
    assert again[3] == "One.  \nTwo" and not outcome.stages
