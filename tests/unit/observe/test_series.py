"""What went through is counted minute by minute, and the oldest minutes go."""
import pytest

from gateway.core.call import Attempt, Call
from gateway.core.errors import GatewayError
from gateway.core.events import Usage
from gateway.observe.series import MAX_NAMES, OTHER, Series, Spread


def call(minute: int, *, model: str = "a/m", took: float = 1.0, outcome: str = "ok", hops: tuple[str, ...] = ("",)) -> Call:
    attempts = [Attempt(label=model, provider=model.partition("/")[0], model="m", key=n, started=0.0, ended=took,
                        error=GatewayError(kind, "failed") if kind else None) for n, kind in enumerate(hops, 1)]
    return Call(id="x", surface="chat", wire="openai-chat", operation="chat", started=0.0, wall=minute * 60.0, ended=took, attempts=attempts,
                outcome=outcome, routed=model if outcome == "ok" else "", first_token_at=took / 2, usage=Usage(input=10, output=2, cached=4), cost_usd=0.5)


def test_a_minute_adds_up():
    series = Series()
    series.add(call(100))
    series.add(call(100, hops=("server_error", "")))
    series.add(call(100, outcome="failed", hops=("timeout", "timeout")))
    series.add(call(100, outcome="client_gone", hops=("client_gone",)))
    [minute] = series.since(100 * 60.0, 5)
    assert (minute.requests, minute.attempts, minute.failovers) == (4, 6, 3)
    assert minute.outcomes == {"ok": 2, "failed": 1, "client_gone": 1}
    assert minute.errors == {"server_error": 1, "timeout": 2}
    assert minute.providers == {"a": [2, 3]}
    assert (minute.input, minute.output, minute.cached, minute.cost_usd) == (40, 8, 16, 2.0)
    assert (series.total, series.total_failed) == (4, 1)


def test_the_oldest_minutes_go_and_names_are_bounded():
    series = Series(minutes=3)
    for minute in range(10):
        series.add(call(minute))
    assert [minute.at for minute in series.since(9 * 60.0, 60)] == [7, 8, 9]
    for n in range(MAX_NAMES + 50):
        series.add(call(9, model=f"p{n}/m"))
    [last] = series.since(9 * 60.0, 1)
    assert len(last.models) <= MAX_NAMES + 1 and len(last.providers) <= MAX_NAMES + 1
    assert last.models[OTHER].requests >= 50


def test_nobody_looks_so_nothing_is_counted():
    series = Series()
    series.counting = False
    series.add(call(1))
    assert series.total == 0 and not list(series.since(60.0, 60))


@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
def test_quantiles_are_known_to_eight_percent(share):
    spread = Spread()
    for ms in range(1, 10_001):
        spread.add(float(ms))
    assert spread.quantile(share) == pytest.approx(share * 10_000, rel=0.08)
    assert Spread().quantile(share) is None
