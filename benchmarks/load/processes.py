"""How are the processes of a run started, pinned to a core and watched?"""
import os
import platform
import resource
import shlex
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
START_S = 90
SPARE_FILES = 500


def raise_files() -> int:
    """Open files that this process and its children may have now: all that the system lets them."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard if hard != resource.RLIM_INFINITY else 1 << 30


def processes_for(streams: int, files: int) -> int:
    """How many processes so many streams need, each of which holds two sockets."""
    return -(-2 * streams // (files - SPARE_FILES)) if files > SPARE_FILES else streams


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
def running(command: str, core: int, log: Path, more: Mapping[str, str] = {}) -> Iterator[subprocess.Popen[bytes]]:
    """A child pinned to a core, with ``more`` in its environment; ended, and only it, when the block is left."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "STATE_DIRECTORY": str(log.parent), **more}
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


def answers(port: int, path: str, within_s: float = 1.0) -> bool:
    """Does it accept, and where there is a ``path``, answer GET with something below 500?"""
    try:
        with socket.create_connection(("127.0.0.1", port), within_s) as line:
            if not path:
                return True
            line.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
            said = b"".join(iter(lambda: line.recv(65_536), b""))       # to its end: who leaves early may be counted as a fault
            return said[9:10] in (b"2", b"3", b"4")
    except OSError:
        return False


def wait_for(port: int, path: str, child: subprocess.Popen[bytes], log: Path) -> float:
    """Seconds until it answers."""
    began = time.monotonic()
    while time.monotonic() - began < START_S:
        if child.poll() is not None:
            raise RuntimeError(f"ended at once: {log.read_text(errors='replace')[-600:]}")
        if answers(port, path):
            return time.monotonic() - began
        time.sleep(0.005)
    raise RuntimeError(f"does not answer after {START_S} s: {log.read_text(errors='replace')[-600:]}")


def measured(pid: int | None, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The row of ``work`` with what the proxy used meanwhile."""
    if pid is None:
        return work()
    idle = rss_mb(pid)
    peak, over = [idle], threading.Event()

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
    return row | {"cores": round(used / 1e6 / (time.monotonic() - began), 3),
                  "cpu_us_per_answer": round(used / max(1, row["answered"]), 2),
                  "cpu_us_per_chunk": round(used / max(1, row["chunks"]), 3),
                  "rss_before_mb": round(idle, 1), "rss_peak_mb": round(peak[0], 1)}


def machine() -> dict[str, Any]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return {"cpu": model, "cores": os.cpu_count(), "python": platform.python_version(), "date": time.strftime("%Y-%m-%d")}
