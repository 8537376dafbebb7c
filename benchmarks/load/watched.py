#!/usr/bin/env python3
"""What does it cost to be watched? Streams at c=32 with records in SQLite, a scrape a second and the operator's page open, beside the
same with records in memory and nobody looking.

    python benchmarks/load/watched.py --rounds 5 --seconds 5 2>/dev/null      (the access lines go there)

Rounds are interleaved and each starts both anew; medians of answers a second and of the gateway's CPU microseconds an answer. The page
is played by what its views ask for, all of them at once: the live list every second, overview, requests and providers every five, the
usage every thirty. Exit status 1 below 0.9 of the answers.
"""
import argparse
import json
import statistics
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from gateway.cli.bench import cpu_s, started
from gateway.mock.load import run_bench

KEY, MODEL, SCENARIO = "bench-key", "bench-model", "streams-20"
CONFIG = """
[[auth.keys]]
name = "bench"
key = "{key}"
[store]
url = "{store}"
[admin]
key = "{key}-of-the-operator"
[[providers]]
id = "bench"
base_url = "{upstream}"
api_keys = ["up-key"]
models = ["{model}"]
"""
LOOKED_AT = {"/metrics": 1.0, "/admin/api/live": 1.0, "/admin/api/overview": 5.0, "/admin/api/requests": 5.0,
             "/admin/api/providers": 5.0, "/admin/api/usage": 30.0}
LEAST = 0.9


def looking(url: str, path: str, every_s: float, stop: threading.Event) -> None:
    request = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {KEY}-of-the-operator"})
    while not stop.wait(every_s):
        with urllib.request.urlopen(request, timeout=30) as answer:
            answer.read()


@contextmanager
def watched(url: str, really: bool) -> Iterator[None]:
    stop = threading.Event()
    eyes = [threading.Thread(target=looking, args=(url, path, every_s, stop)) for path, every_s in LOOKED_AT.items()] if really else []
    for eye in eyes:
        eye.start()
    try:
        yield
    finally:
        stop.set()
        for eye in eyes:
            eye.join()


def measure(really: bool, seconds: float) -> tuple[float, float]:
    """Answers a second, CPU microseconds an answer."""
    with tempfile.TemporaryDirectory() as folder, started(["gateway.mock.bench_upstream"]) as (upstream, _):
        store = f"sqlite:{folder}/gateway.db" if really else "memory:"
        config = Path(folder) / "gateway.toml"
        config.write_text(CONFIG.format(key=KEY, store=store, upstream=upstream, model=MODEL), encoding="utf-8")
        with started(["gateway", "serve", "--config", str(config), "--port", "0"]) as (url, pid), watched(url, really):
            run_bench(url, KEY, MODEL, [SCENARIO], 1.0)
            before = cpu_s(pid) or 0.0
            row = run_bench(url, KEY, MODEL, [SCENARIO], seconds)[0]
            if not row.valid:
                raise SystemExit(f"no result: {row.first_error}")
            return row.per_s, ((cpu_s(pid) or 0.0) - before) * 1e6 / row.answered


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for n in range(given.rounds):
        for really in (False, True):
            found[really].append(measure(really, given.seconds))
            print(f"round {n + 1}, {'watched' if really else 'alone'}: {found[really][-1][0]:,.0f} answers/s, "
                  f"{found[really][-1][1]:,.0f} CPU us an answer")
    rate = {really: statistics.median(rate for rate, _ in rows) for really, rows in found.items()}
    cost = {really: statistics.median(cost for _, cost in rows) for really, rows in found.items()}
    told = {"alone_per_s": rate[False], "watched_per_s": rate[True], "throughput_ratio": rate[True] / rate[False],
            "alone_cpu_us": cost[False], "watched_cpu_us": cost[True]}
    print(json.dumps(told, indent=2) if given.json else
          f"alone {rate[False]:,.0f}/s, watched {rate[True]:,.0f}/s: ratio {told['throughput_ratio']:.2f} "
          f"(CPU {cost[False]:,.0f} and {cost[True]:,.0f} us an answer)")
    raise SystemExit(told["throughput_ratio"] < LEAST)


if __name__ == "__main__":
    main()
