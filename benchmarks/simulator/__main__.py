"""Every strategy on every day, side by side. ``python -m benchmarks.simulator [--hours 24] [--seed 1] [--png out.png]``

The same seed gives the same table. ``--only outages`` replays one day, ``--requests`` makes days fuller, ``--json`` is for programs.
"""
import argparse
import json
from collections.abc import Sequence
from random import Random

from benchmarks.simulator.days import SCENARIOS, Scenario
from benchmarks.simulator.replay import Day, Result
from benchmarks.simulator.show import METRICS, picture, table
from gateway.routing.combos import Settings
from gateway.routing.strategies import STRATEGIES

# Beside each strategy as it comes: the packs and routers that people choose ``auto`` for.
TUNED: dict[str, tuple[str, Settings]] = {
    "auto cost-saver": ("auto", Settings(mode_pack="cost-saver", exploration=0.0)),
    "auto ship-fast": ("auto", Settings(mode_pack="ship-fast", exploration=0.0)),
    "auto reliability-first": ("auto", Settings(mode_pack="reliability-first", exploration=0.0)),
    "auto, router latency": ("auto", Settings(router="latency")),
}


def replayed(scenario: Scenario, hours: float, n: int, seed: int) -> list[Result]:
    """One day with every strategy."""
    requests = scenario.load(Random(f"{seed}/{scenario.name}"), hours, n)
    tokens = sum(asked.prompt + asked.answer for asked in requests)
    plain = {name: (name, Settings()) for name in STRATEGIES}
    return [Day(scenario.sites, strategy, settings, seed, name, tokens).run(requests)
            for name, (strategy, settings) in {**plain, **TUNED}.items()]


def main(given: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.simulator", description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--hours", type=float, default=24.0)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--requests", type=int, default=2000, help="a day")
    options.add_argument("--only", default="", choices=["", *(scenario.name for scenario in SCENARIOS)])
    options.add_argument("--png", default="", help="where to draw it")
    options.add_argument("--json", action="store_true")
    chosen = options.parse_args(given)
    days = {scenario: replayed(scenario, chosen.hours, chosen.requests, chosen.seed)
            for scenario in SCENARIOS if chosen.only in ("", scenario.name)}
    if chosen.json:
        print(json.dumps({scenario.name: {result.strategy: {name: value(result) for name, (value, _, _) in METRICS.items()}
                                          for result in results} for scenario, results in days.items()}))
    else:
        for scenario, results in days.items():
            table(scenario, results)
    if chosen.png:
        picture(days, chosen.png)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
