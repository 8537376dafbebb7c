#!/usr/bin/env python3
"""What does the gateway cost beside the leanest proxies that do nothing? One core for the proxy, another for upstream and load.

    python benchmarks/load/run.py --peers direct,splice,aiohttp,gateway --rounds 3
    python benchmarks/load/run.py --peers aiohttp,mine --peer 'mine=python my_proxy.py --port {port} --upstream {upstream}'

Rounds are interleaved: each starts every peer anew, so that a busy minute of the machine hits all alike. CPU microseconds per
answer and per chunk (of the proxy's process tree) are what noise disturbs least: of them the least of the rounds is shown, of
all else the median. A row with an error, a truncated or an unfinished stream is marked and is no result.
"""
import argparse
import json
import os
import platform
import resource
import shlex
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))
from gateway.mock.load import SCENARIOS  # noqa: E402  (a checkout need not be installed)

KEY = os.environ.get("BENCH_KEY", "bench-key")    # what the load sends; a foreign proxy may want its own
PYTHON = sys.executable
START_S = 20
REFERENCE = "aiohttp"

GATEWAY_CONFIG = """
[server]
host = "127.0.0.1"
port = {port}

[[auth.keys]]
name = "bench"
key = "{key}"

[[providers]]
id = "bench"
wire = "openai-chat"
base_url = "{upstream}"
api_keys = ["up-key"]
models = ["bench-model"]
"""

PEERS: dict[str, str] = {
    "splice": f"{PYTHON} {HERE}/refs/raw_splice.py --port {{port}} --upstream {{upstream}}",
    "aiohttp": f"{PYTHON} {HERE}/refs/aiohttp_passthrough.py --port {{port}} --upstream {{upstream}} --key {{key}}",
    "gateway": f"{PYTHON} -m gateway serve --config {{config}}",
}


# -- processes and what they use

def tree(pid: int) -> list[int]:
    """The process and all below it."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += map(int, task.read_text().split())
            except OSError:
                pass
    return found


def cpu_us(pid: int) -> float:
    """CPU time so far; in nanoseconds from the scheduler where the kernel tells them, else in ticks."""
    used = 0.0
    for process in tree(pid):
        try:
            used += sum(int(f.read_text().split()[0]) for f in Path(f"/proc/{process}/task").glob("*/schedstat")) / 1e3
        except (OSError, IndexError, ValueError):
            fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
            used += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") * 1e6
    return used


def rss_mb(pid: int) -> float:
    pages = 0
    for process in tree(pid):
        try:
            pages += int(Path(f"/proc/{process}/statm").read_text().split()[1])
        except OSError:
            pass
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


NICE = int(os.environ.get("BENCH_NICE", "0"))        # below 0 (root only): what is measured goes before other work


def place(core: int) -> None:
    """In the child: its core, and its priority, also where the kernel groups processes by session."""
    os.sched_setaffinity(0, {core})
    if NICE:
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
        autogroup = Path("/proc/self/autogroup")
        if autogroup.exists():
            autogroup.write_text(str(NICE))


@contextmanager
def running(command: str, core: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A child pinned to a core; ended, and only it, when the block is left."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "STATE_DIRECTORY": str(log.parent)}
    with log.open("wb") as out:
        child = subprocess.Popen(shlex.split(command), stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=ROOT, env=env,
                                 start_new_session=True, preexec_fn=lambda: place(core))
        try:
            yield child
        finally:
            child.terminate()
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def wait_for(port: int, child: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(START_S * 100):
        if child.poll() is not None:
            raise RuntimeError(f"ended at once: {log.read_text(errors='replace')[-600:]}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.01)
    raise RuntimeError(f"does not listen after {START_S} s")


# -- one measurement

def one_load(url: str, scenario: str, core: int, seconds: float | None) -> dict[str, Any]:
    command = [PYTHON, "-m", "gateway.mock.load", url, "--key", KEY, "--scenario", scenario]
    if seconds is not None:
        command += ["--seconds", str(seconds)]
    done = subprocess.run(command, capture_output=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=240,
                          start_new_session=True, preexec_fn=lambda: place(core))
    if done.returncode:
        raise RuntimeError(f"{scenario}: {done.stderr.decode(errors='replace')[-400:]}")
    row: dict[str, Any] = json.loads(done.stdout)[0]
    return row


def measured(pid: int | None, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The row of ``work`` with what the proxy used meanwhile."""
    if pid is None:
        return work()
    peak, over = [rss_mb(pid)], threading.Event()

    def sample() -> None:
        while not over.wait(0.1):
            peak[0] = max(peak[0], rss_mb(pid))
    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    before, began = cpu_us(pid), time.monotonic()
    try:
        row = work()
    finally:
        over.set()
        sampler.join()
    used = cpu_us(pid) - before
    row["cores"] = round(used / 1e6 / (time.monotonic() - began), 3)
    row["cpu_us_per_answer"] = round(used / max(1, row["answered"]), 2)
    row["cpu_us_per_chunk"] = round(used / max(1, row["chunks"]), 3)
    row["rss_peak_mb"] = round(peak[0], 1)
    return row


def measure(peer: str, command: str | None, given: argparse.Namespace) -> dict[str, Any]:
    """All scenarios of one peer, started anew."""
    result: dict[str, Any] = {"scenarios": {}}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        up_port, port = free_port(), free_port()
        upstream = f"http://127.0.0.1:{up_port}/v1"
        with running(f"{PYTHON} -m gateway.mock.bench_upstream --port {up_port}", given.load_core, work / "upstream.log") as up:
            wait_for(up_port, up, work / "upstream.log")
            if command is None:
                for name in given.scenarios:
                    result["scenarios"][name] = one_load(upstream, name, given.load_core, given.seconds)
                return result
            config, log = work / "gateway.toml", work / "peer.log"
            config.write_text(GATEWAY_CONFIG.format(port=port, key=KEY, upstream=upstream))
            line = command.format(port=port, upstream=upstream, config=config, key=KEY)
            began = time.monotonic()
            with running(line, given.proxy_core, log) as child:
                wait_for(port, child, log)
                result["start_s"] = round(time.monotonic() - began, 2)
                base = f"http://127.0.0.1:{port}/v1"
                for name in ("whole-32", "streams-20"):             # warm up: caches, connections, lazily made things
                    warm = one_load(base, name, given.load_core, 0.5)
                    if not warm["ok"]:
                        raise RuntimeError(f"gives no answer: {warm['first_error']}")
                time.sleep(1)
                result["rss_idle_mb"] = round(rss_mb(child.pid), 1)
                for name in given.scenarios:
                    result["scenarios"][name] = measured(
                        child.pid, lambda name=name: one_load(base, name, given.load_core, given.seconds))
            left = json.loads(urllib.request.urlopen(upstream + "/stats", timeout=5).read())
            result["upstream_aborted"] = left["aborted"]
    return result


# -- the report

LEAST = {"cpu_us_per_answer", "cpu_us_per_chunk", "cores"}


def figure(rounds: list[dict[str, Any]], scenario: str, field: str) -> float | None:
    values = [v for r in rounds if (v := r["scenarios"].get(scenario, {}).get(field)) is not None]
    if not values:
        return None
    return float(min(values) if field in LEAST else statistics.median(values))


def bad(rounds: list[dict[str, Any]], scenario: str) -> bool:
    rows = [r["scenarios"][scenario] for r in rounds if scenario in r["scenarios"]]
    return any(row["errors"] or row["truncated"] or row["unfinished"] or not row["ok"] for row in rows)


def growth_kb(rounds: list[dict[str, Any]], scenario: str) -> float | None:
    """Memory for one more stream: (peak - idle) / streams."""
    grown = [(r["scenarios"][scenario]["rss_peak_mb"] - r["rss_idle_mb"]) * 1e3 / SCENARIOS[scenario].clients
             for r in rounds if "rss_peak_mb" in r["scenarios"].get(scenario, {})]
    return statistics.median(grown) if grown else None


COLUMNS = ("answers/s", "chunks/s", "CPU µs/answer", "× aiohttp", "CPU µs/chunk", "× aiohttp", "TTFT p50 ms", "TTFT p99 ms",
           "× aiohttp", "p50 ms", "RSS peak MB", "KB/stream")


def cells(rounds: list[dict[str, Any]], reference: list[dict[str, Any]], scenario: str) -> list[float | None]:
    def own(field: str) -> float | None:
        return figure(rounds, scenario, field)

    def ratio(field: str) -> float | None:
        mine, theirs = own(field), figure(reference, scenario, field)
        return mine / theirs if mine and theirs else None
    streams = SCENARIOS[scenario].stream
    return [own("per_s"), own("chunks_per_s") if streams else None, own("cpu_us_per_answer"), ratio("cpu_us_per_answer"),
            own("cpu_us_per_chunk") if streams else None, ratio("cpu_us_per_chunk") if streams else None,
            own("ttft_p50_ms"), own("ttft_p99_ms"), ratio("ttft_p99_ms"), own("latency_p50_ms"), own("rss_peak_mb"),
            growth_kb(rounds, scenario) if scenario == "slow-1000" else None]


def text(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def show(data: dict[str, Any]) -> None:
    """The tables, as Markdown."""
    peers: dict[str, list[dict[str, Any]]] = data["peers"]
    reference = peers.get(REFERENCE, [])
    for name in data["scenarios"]:
        print(f"\n**{name}**: {SCENARIOS[name].about}\n\n| peer | " + " | ".join(COLUMNS) + " |")
        print("|---|" + "---:|" * len(COLUMNS))
        for peer, rounds in peers.items():
            if any(name in r["scenarios"] for r in rounds):
                mark = " **(not valid)**" if bad(rounds, name) else ""
                print(f"| {peer}{mark} | " + " | ".join(map(text, cells(rounds, reference, name))) + " |")
    print()
    for peer, rounds in peers.items():
        for r in rounds:
            if "error" in r:
                print(f"{peer}: {r['error']}")
            for name, row in r["scenarios"].items():
                if row["first_error"]:
                    print(f"{peer} {name}: {row['errors']} errors, {row['truncated']} truncated, {row['unfinished']} unfinished: "
                          f"{row['first_error'][:200]}")


def machine() -> dict[str, Any]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return {"cpu": model, "cores": os.cpu_count(), "python": platform.python_version(), "date": time.strftime("%Y-%m-%d")}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default="direct,splice,aiohttp,gateway")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND",
                        help="another proxy; {port}, {upstream} and {key} are filled in")
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, help="instead of each scenario's own")
    parser.add_argument("--out", type=Path, default=Path("bench-load.json"))
    parser.add_argument("--show", type=Path, help="print the tables of an earlier run and stop")
    parser.add_argument("--proxy-core", type=int, default=0)
    parser.add_argument("--load-core", type=int, default=1)
    given = parser.parse_args()
    given.scenarios = given.scenarios.split(",")
    cores = os.sched_getaffinity(0)
    given.proxy_core = given.proxy_core if given.proxy_core in cores else min(cores)
    given.load_core = given.load_core if given.load_core in cores else max(cores)
    return given


def main() -> None:
    given = arguments()
    if given.show:
        show(json.loads(given.show.read_text()))
        return
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    commands: dict[str, str | None] = {"direct": None, **PEERS, **dict(extra.split("=", 1) for extra in given.peer)}
    peers = given.peers.split(",")
    data: dict[str, Any] = {"machine": machine(), "scenarios": given.scenarios, "peers": {peer: [] for peer in peers}}
    for number in range(given.rounds):
        for peer in peers:
            try:
                result = measure(peer, commands[peer], given)
            except (RuntimeError, OSError, subprocess.TimeoutExpired) as exc:   # one peer's failure must not end the run
                result = {"scenarios": {}, "error": str(exc)[:600]}
            data["peers"][peer].append(result)
            given.out.write_text(json.dumps(data, indent=1))
            rates = " ".join(f"{name}={row['per_s']:g}/s" for name, row in result["scenarios"].items())
            print(f"round {number + 1} {peer}: {rates or result.get('error')}", file=sys.stderr, flush=True)
    show(data)


if __name__ == "__main__":
    main()
