"""A distribution in text: every answer is in it, its lines are few, its percentiles are marked."""
import pytest

from gateway.cli.histogram import ROWS, WIDTH, bar, drawn, merged


def test_many_steps_become_few_and_lose_nothing():
    steps = [(float(n), n) for n in range(1, 60)]
    rows = merged(steps)
    assert len(rows) <= ROWS and sum(n for _, n in rows) == sum(n for _, n in steps) and rows[-1][0] == 59


def test_what_lies_far_out_is_one_step():
    rows = merged([(1.0, 5_000), (2.0, 4_999), *((float(n), 0) for n in range(3, 400)), (400.0, 1)])
    assert rows == [(1.0, 5_000), (2.0, 4_999), (400.0, 1)]


@pytest.mark.parametrize(("share", "length"), [(0, 0), (0.0001, 1), (0.5, WIDTH // 2), (1, WIDTH)])
def test_a_bar_is_as_long_as_its_share(share, length):
    assert len(bar(share)) == length


def test_percentiles_are_marked_where_they_lie():
    lines = drawn([(1.0, 50), (2.0, 45), (400.0, 5)])
    assert [line.split("%")[1].split() for line in lines] == [["p50"], ["p90"], ["p99"]]
    assert [line.split("ms")[0].strip() for line in lines] == ["≤ 1.00", "≤ 2.00", "≤ 400"]
    assert drawn([]) == []
