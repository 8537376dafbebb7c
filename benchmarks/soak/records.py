"""Is everything there that the metric counted? Many requests, `kill -9` in the middle of them, and a look into the file.

    scripts/accept records --requests 100000

The gateway's own ``gateway_ledger_rows_total`` is read while requests go on; then it is killed. Every row that it counted must be
in the file, once and with its attempts, the hours' and days' sums must say what the rows say, and SQLite must find the file
whole. Ends with 1 where anything of it is not so.
"""
import argparse
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import closing
from pathlib import Path

from gateway.cli.bench import started

KEY, MODEL, METRIC = "records-key", "bench-model", "gateway_ledger_rows_total"
CONFIG = """
[[auth.keys]]
name = "bench"
key = "{key}"
[store]
url = "sqlite:{folder}/gateway.db"
[admin]
key = "{key}-of-the-operator"
[[providers]]
id = "bench"
base_url = "{upstream}"
api_keys = ["up-key"]
models = ["{model}"]
"""
ROWS = "SELECT count(*), count(DISTINCT request), sum(outcome = 'ok'), sum(attempts), sum(input), sum(output) FROM requests"
SUMS = "SELECT sum(requests), sum(ok), sum(attempts), sum(input), sum(output) FROM {}"


def counted(url: str) -> int:
    """What the gateway says of rows on the disk."""
    request = urllib.request.Request(url + "/metrics", headers={"Authorization": f"Bearer {KEY}-of-the-operator"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return int(float(next(line for line in lines if line.startswith(METRIC + " ")).split()[1]))


def killed(folder: str, n_requests: int) -> int:
    """Asks until so many rows are counted, kills it while more are asked for, and says how many the last look counted."""
    config = Path(folder) / "gateway.toml"
    with started(["gateway.mock.bench_upstream"]) as (upstream, _):
        config.write_text(CONFIG.format(key=KEY, folder=folder, upstream=upstream, model=MODEL), encoding="utf-8")
        with started(["gateway", "serve", "--config", str(config), "--port", "0"]) as (url, pid):
            return _killed_at(url, pid, n_requests)


def _killed_at(url: str, pid: int, n_requests: int) -> int:
    asks = [sys.executable, "-m", "gateway.mock.load", url, "--key", KEY, "--model", MODEL, "--scenario", "whole-32",
            "--seconds", "3600"]
    with subprocess.Popen(asks, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as load:
        try:
            while (n := counted(url)) < n_requests:
                if load.poll() is not None:
                    raise SystemExit(f"the load ended after {n:,} rows")
                time.sleep(0.5)
            os.kill(pid, signal.SIGKILL)
            return n
        finally:
            load.kill()


def wrong(file: str, n_counted: int) -> tuple[int, list[str]]:
    """How many rows are there, and a line for everything that is not as it should be."""
    with closing(sqlite3.connect(file)) as db:
        n_rows, n_names, *rows = db.execute(ROWS).fetchone()
        (n_attempts,) = db.execute("SELECT count(*) FROM attempts").fetchone()
        found = [f"the sums of {table} are {sums}, the rows say {[n_rows, *rows]}" for table in ("usage_hourly", "usage_daily")
                 if (sums := list(db.execute(SUMS.format(table)).fetchone())) != [n_rows, *rows]]
        (whole,) = db.execute("PRAGMA integrity_check").fetchone()
    checks = (
        (n_rows >= n_counted, f"{n_counted:,} rows were counted, {n_rows:,} are there"),
        (n_names == n_rows, f"{n_rows - n_names:,} requests are there twice"),
        (n_attempts == rows[1], f"the requests tell of {rows[1]} attempts, {n_attempts:,} are there"),
        (whole == "ok", f"integrity_check: {whole}"),
    )
    return n_rows, found + [line for holds, line in checks if not holds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=100_000)
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        n_counted = killed(folder, given.requests)
        took_s = time.monotonic() - began
        n_rows, problems = wrong(f"{folder}/gateway.db", n_counted)
    print(f"counted before the kill {n_counted:,}, in the file {n_rows:,}, killed after {took_s:.0f} s: "
          f"{'; '.join(problems) or 'nothing is missing, the sums agree, the file is whole'}")
    raise SystemExit(1 if problems else 0)


if __name__ == "__main__":
    main()
