"""What is kept of answers: within the bounds, the least recently used out first, nothing after its time."""
import asyncio

from hypothesis import given
from hypothesis import strategies as st

from gateway.cache.exact import ENTRY_OVERHEAD, MAX_ENTRY_BYTES, Answer, Answers
from gateway.cache.flight import Flights
from gateway.cache.keeping import Keeping
from gateway.core.errors import GatewayError


def answer(body=b"x", expires=100.0, stream=False, **more):
    return Answer(body=body, content_type="application/json", stream=stream, routed="a/m", expires=expires, **more)


def test_the_least_recently_used_goes_first():
    answers = Answers(max_entries=2)
    answers.put(b"a", answer())
    answers.put(b"b", answer())
    answers.get(b"a", 0.0)
    answers.put(b"c", answer())
    assert [answers.get(key, 0.0) is not None for key in (b"a", b"b", b"c")] == [True, False, True]
    assert answers.statistics.evicted == 1


def test_an_answer_is_gone_after_its_time():
    answers = Answers()
    answers.put(b"a", answer(expires=10.0))
    assert answers.get(b"a", 9.9) is not None and answers.get(b"a", 10.0) is None and len(answers) == 0 == answers.n_bytes


def test_what_is_too_large_is_not_kept():
    answers = Answers()
    assert not answers.put(b"a", answer(b"x" * (MAX_ENTRY_BYTES + 1))) and answers.statistics.too_large == 1


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3_000)), max_size=40))
def test_the_budget_holds_and_is_counted_right(puts):
    answers = Answers(max_entries=5, max_bytes=8_000)
    for name, size in puts:
        answers.put(bytes([name]), answer(b"x" * size))
        assert len(answers) <= 5 and answers.n_bytes <= 8_000
    assert answers.n_bytes == sum(found.cost for name in range(10) if (found := answers.get(bytes([name]), 0.0)) is not None)
    n = len(answers)
    assert answers.clear() == n and answers.n_bytes == 0
    assert answer(b"").cost == ENTRY_OVERHEAD


class Shelf:
    """A store of answers in a dict."""

    def __init__(self, broken=False):
        self.rows, self.broken = {}, broken

    async def load(self, wall, max_count, max_bytes):
        if self.broken:
            raise GatewayError("internal", "no disk")
        return list(self.rows.items())

    def put(self, key, value, until):
        self.rows[key] = value

    def delete(self, key):
        self.rows.pop(key, None)


class Noon:
    def wall(self):
        return 50.0


async def test_whole_answers_outlive_a_restart_and_streams_do_not():
    shelf, answers = Shelf(), Answers(max_entries=2)
    await Keeping(answers, shelf, Noon()).open()
    answers.put(b"gone", answer())
    answers.put(b"stream", answer(stream=True))
    answers.put(b"whole", answer(b"kept"))
    answers.put(b"late", answer(expires=60.0))
    again = Answers()
    await Keeping(again, shelf, Noon()).open()
    assert [key for key in (b"gone", b"stream", b"whole", b"late") if again.get(key, 50.0) is not None] == [b"whole", b"late"]
    again.clear()
    assert shelf.rows == {}


async def test_a_store_that_cannot_be_read_costs_only_the_answers_of_before():
    answers = Answers()
    await Keeping(answers, Shelf(broken=True), Noon()).open()
    assert answers.put(b"a", answer())


async def test_who_waits_is_told_also_of_nothing():
    flights = Flights()
    first = flights.lead(b"a")
    waiting = [asyncio.ensure_future(asyncio.shield(first.landed)) for _ in range(3)]
    flights.land(b"a", None)
    flights.land(b"a", answer())
    assert await asyncio.gather(*waiting) == [None] * 3 and len(flights) == 0
