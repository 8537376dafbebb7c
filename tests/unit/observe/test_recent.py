"""The last lines are kept with growing numbers."""
import logging

from gateway.observe.recent import Recent


def test_lines_are_numbered_and_the_oldest_go():
    recent = Recent(max_lines=3)
    for n in range(1, 6):
        recent.put(f"line {n}\n")
    assert list(recent.after(0, 10)) == [(3, "line 3"), (4, "line 4"), (5, "line 5")]
    assert list(recent.after(0, 2)) == [(4, "line 4"), (5, "line 5")]
    assert list(recent.after(4, 10)) == [(5, "line 5")]
    assert list(recent.after(recent.last, 10)) == []


def test_what_is_logged_is_there_as_well():
    recent = Recent()
    recent.emit(logging.LogRecord("gateway.x", logging.WARNING, "", 1, "said %s", ("so",), None))
    [(number, line)] = recent.after(0, 10)
    assert number == 1 and line.endswith("WARNING gateway.x: said so")
