"""The same seed is the same day, and the strategies win where the simulator's text says that they do."""
from random import Random

import pytest

from benchmarks.simulator.__main__ import main
from benchmarks.simulator.days import SCENARIOS
from benchmarks.simulator.replay import Day
from gateway.routing.combos import Settings

DAYS = {scenario.name: scenario for scenario in SCENARIOS}


def day(name, strategy, n=500, seed=1):
    scenario = DAYS[name]
    requests = scenario.load(Random(f"{seed}/{name}"), 24.0, n)
    return Day(scenario.sites, strategy, Settings(), seed, strategy, sum(one.prompt + one.answer for one in requests)).run(requests)


@pytest.mark.parametrize("strategy", ["priority", "random", "auto", "bandit"])
def test_a_day_can_be_replayed(strategy):
    assert day("outages", strategy, 200) == day("outages", strategy, 200)
    assert day("outages", strategy, 200) != day("outages", strategy, 200, seed=2)


def test_what_lapses_first_is_used_first():
    assert day("weeks", "reset-window").success > day("weeks", "round-robin").success > day("weeks", "priority").success


def test_each_wins_where_it_should():
    assert day("prices", "cost-optimized").cost_per_1000 < day("prices", "priority").cost_per_1000 / 5
    assert day("calm", "bandit").p95_s < day("calm", "priority").p95_s / 2
    assert day("talks", "cache-optimized").cost_per_1000 < day("talks", "round-robin").cost_per_1000
    assert day("rush", "weighted").attempts_per_answer < day("rush", "priority").attempts_per_answer
    assert day("outages", "lkgp").attempts_per_answer < day("outages", "random").attempts_per_answer
    assert day("files", "context-optimized").attempts_per_answer == 1.0


def test_the_command_prints_a_table_and_data(capsys):
    assert main(["--only", "calm", "--requests", "20"]) == 0
    assert "cost-optimized" in capsys.readouterr().out
    assert main(["--only", "calm", "--requests", "20", "--json"]) == 0
    assert '"success": 1.0' in capsys.readouterr().out


def test_it_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    assert main(["--only", "calm", "--requests", "20", "--json", "--png", str(tmp_path / "day.png")]) == 0
    assert (tmp_path / "day.png").read_bytes().startswith(b"\x89PNG")
