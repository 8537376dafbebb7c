#!/usr/bin/env python3
"""What does the gateway cost beside the leanest proxies that do nothing? One core for the proxy, another for upstream and load.

    python benchmarks/load/run.py --peers direct,splice,aiohttp,gateway --rounds 3
    python benchmarks/load/run.py --peers direct,aiohttp,gateway,litellm,portkey,nginx     # others/ says how each is started
    python benchmarks/load/run.py --install litellm,portkey                                # below $BENCH_HOME
    python benchmarks/load/run.py --peers aiohttp,mine --peer 'mine=python my_proxy.py --port {port} --upstream {upstream}'

Rounds are interleaved: each starts every peer anew, so that a busy minute of the machine hits all alike. CPU microseconds per
answer and per chunk (of the proxy's process tree) are what noise disturbs least: of them the least of the rounds is shown, of
all else the median. A row with an error, a truncated or an unfinished stream is marked and is no result.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))      # a checkout need not be installed
from benchmarks.load.bounds import broken
from benchmarks.load.peers import HOME, KEY, PYTHON, Peer, filled, installation, known, missing, our_config
from benchmarks.load.processes import (
    ROOT,
    free_port,
    machine,
    measured,
    place,
    processes_for,
    raise_files,
    rss_mb,
    running,
    wait_for,
)
from benchmarks.load.report import show
from gateway.mock.scenarios import DEMANDING, SCENARIOS
from gateway.routing.cooldown import LOOPBACK_S

WARM_UP = ("whole-32", "streams-20")             # caches, connections, lazily made things
FAILS_OVER = "failover-"
TOO_FEW_FILES = """{}: only {} open files are allowed, so {} processes of the gateway share its core. For one, raise the hard limit to
{} (ulimit -Hn as root, LimitNOFILE= of systemd, nofile in limits.conf, docker run --ulimit nofile=…)"""


def one_load(url: str, scenario: str, given: argparse.Namespace, headers: tuple[str, ...] = (),
             seconds: float | None = None) -> dict[str, Any]:
    command = [PYTHON, "-m", "gateway.mock.load", url, "--key", KEY, "--scenario", scenario]
    seconds = seconds or given.seconds
    if seconds is not None:
        command += ["--seconds", str(seconds)]
    for header in headers:
        command += ["--header", header]
    done = subprocess.run(command, capture_output=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=300,
                          start_new_session=True, preexec_fn=lambda: place(given.load_core))
    if done.returncode:
        raise RuntimeError(f"{scenario}: {done.stderr.decode(errors='replace')[-400:]}")
    row: dict[str, Any] = json.loads(done.stdout)[0]
    return row


def stats(address: str) -> dict[str, int]:
    """What the upstream has seen."""
    found: dict[str, int] = json.loads(urllib.request.urlopen(f"http://{address}/v1/stats", timeout=5).read())
    return found


def stages(peer: Peer, scenarios: list[str]) -> list[list[str]]:
    """Scenarios that one process of the peer sees; those that want a configuration of their own are for this project only."""
    usual = [name for name in scenarios if name not in DEMANDING]
    if not peer.ours:
        return [usual]
    over = [name for name in scenarios if name.startswith(FAILS_OVER)]
    many = [name for name in scenarios if name in DEMANDING and name not in over]
    return [stage for stage in (usual, over, many) if stage]


def measure(peer: Peer, given: argparse.Namespace) -> dict[str, Any]:
    """All scenarios of one peer, started anew."""
    result: dict[str, Any] = {"scenarios": {}}
    for names in stages(peer, given.scenarios):
        with tempfile.TemporaryDirectory() as folder, upstream(Path(folder), given) as address:
            if peer.command:
                stage(peer, names, address, Path(folder), given, result)
            else:
                for name in names:
                    result["scenarios"][name] = one_load(f"http://{address}/v1", name, given)
            result["upstream_aborted"] = result.get("upstream_aborted", 0) + stats(address)["aborted"]
    return result


@contextmanager
def upstream(folder: Path, given: argparse.Namespace) -> Iterator[str]:
    """Host and port of the scripted upstream."""
    port, log = free_port(), folder / "upstream.log"
    with running(f"{PYTHON} -m gateway.mock.bench_upstream --port {port}", given.load_core, log) as child:
        wait_for(port, "", child, log)
        yield f"127.0.0.1:{port}"


def stage(peer: Peer, names: list[str], address: str, folder: Path, given: argparse.Namespace, result: dict[str, Any]) -> None:
    port, config, log = free_port(), folder / "gateway.toml", folder / "peer.log"
    values = {"port": port, "upstream": f"http://{address}/v1", "address": address, "folder": folder, "key": KEY, "home": HOME,
              "config": config}
    workers = max(processes_for(SCENARIOS[name].clients, given.files) for name in names)
    config.write_text(our_config(address, port, names[0].startswith(FAILS_OVER), workers))
    for name, text in peer.files.items():
        (folder / name).write_text(filled(text, values))
    headers = tuple(filled(header, values) for header in peer.headers)
    base = f"http://127.0.0.1:{port}/v1"
    with running(filled(peer.command, values), given.proxy_core, log, peer.env) as child:
        start_s = wait_for(port, peer.ready, child, log)
        time.sleep(0.5)
        fresh = round(rss_mb(child.pid), 1)
        for name in WARM_UP:
            warm = one_load(base, name, given, headers, seconds=0.5)
            if not warm["answered"]:
                raise RuntimeError(f"gives no answer: {warm['first_error']}")
        time.sleep(1)
        if "start_s" not in result:
            result |= {"start_s": round(start_s, 3), "rss_fresh_mb": fresh, "rss_idle_mb": round(rss_mb(child.pid), 1)}
        for name in names:
            if name.startswith(FAILS_OVER):          # each model once before: what happens once in its life is not meant
                one_load(base, name, given, headers)
                time.sleep(LOOPBACK_S + 0.5)
            before = stats(address)["refused"]
            row = measured(child.pid, lambda name=name: one_load(base, name, given, headers))
            row |= {"processes": workers, "refused": stats(address)["refused"] - before}
            result["scenarios"][name] = row


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default="direct,splice,aiohttp,gateway")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND",
                        help="another proxy; {port}, {upstream}, {key} and, for this project, {config} are filled in")
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, help="instead of each scenario's own")
    parser.add_argument("--out", type=Path, default=Path("bench-load.json"))
    parser.add_argument("--merge", action="store_true", help="keep the peers of --out that are not measured now")
    parser.add_argument("--show", type=Path, help="print the tables of an earlier run and stop")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a bound of bounds.py is broken")
    parser.add_argument("--install", metavar="NAMES", help="install others from the registries and stop")
    parser.add_argument("--proxy-core", type=int, default=0)
    parser.add_argument("--load-core", type=int, default=1)
    given = parser.parse_args()
    given.scenarios = given.scenarios.split(",")
    if unknown := set(given.scenarios) - set(SCENARIOS):
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}")
    cores = os.sched_getaffinity(0)
    given.proxy_core = given.proxy_core if given.proxy_core in cores else min(cores)
    given.load_core = given.load_core if given.load_core in cores else max(cores)
    return given


def install(names: str, peers: dict[str, Peer]) -> None:
    HOME.mkdir(parents=True, exist_ok=True)
    for name in names.split(","):
        for command in installation(peers[name]):
            print(" ".join(command), file=sys.stderr, flush=True)
            subprocess.run(command, check=True)


def main() -> None:
    given = arguments()
    peers = known(given.peer)
    if given.install:
        return install(given.install, peers)
    data = json.loads(given.show.read_text()) if given.show else run(given, peers)
    show(data)
    if given.check and (found := broken(data)):
        raise SystemExit("\n".join(found))


def run(given: argparse.Namespace, peers: dict[str, Peer]) -> dict[str, Any]:
    given.files = raise_files()
    names = given.peers.split(",")
    for name in names:
        if name not in peers:
            raise SystemExit(f"no such peer: {name}; there are {', '.join(peers)}")
        if file := missing(peers[name]):
            raise SystemExit(f"{name} is not installed ({file}): run.py --install {name}")
    for name in given.scenarios:
        if (n := processes_for(SCENARIOS[name].clients, given.files)) > 1:
            print(TOO_FEW_FILES.format(name, given.files, n, 2 * SCENARIOS[name].clients + 1_000), file=sys.stderr)
    kept = json.loads(given.out.read_text()) if given.merge and given.out.exists() else {"scenarios": [], "peers": {}}
    data: dict[str, Any] = {"machine": machine(), "peers": {**kept["peers"], **{name: [] for name in names}},
                            "scenarios": [name for name in SCENARIOS if name in {*kept["scenarios"], *given.scenarios}]}
    for number in range(given.rounds):
        for name in names:
            try:
                result = measure(peers[name], given)
            except (RuntimeError, OSError, subprocess.TimeoutExpired) as exc:   # one peer's failure must not end the run
                result = {"scenarios": {}, "error": str(exc)[:600]}
            data["peers"][name].append(result)
            given.out.write_text(json.dumps(data, indent=1))
            rates = " ".join(f"{each}={row['per_s']:g}/s" for each, row in result["scenarios"].items())
            print(f"round {number + 1} {name}: {rates or result.get('error')}", file=sys.stderr, flush=True)
    return data


if __name__ == "__main__":
    main()
