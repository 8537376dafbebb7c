"""How is one function timed so that a busy machine does not show? The least of several runs, per call, in microseconds."""
import time
from collections.abc import Callable

RUNS = 7


def timed(function: Callable[[], object], calls: int = 2_000, per: int = 1) -> float:
    """Microseconds of CPU time for one of the ``per`` things that ``function`` does."""
    best = float("inf")
    for _ in range(RUNS):
        began = time.process_time_ns()
        for _ in range(calls):
            function()
        best = min(best, (time.process_time_ns() - began) / calls)
    return best / 1e3 / per
