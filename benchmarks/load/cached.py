#!/usr/bin/env python3
"""What does an answer out of the cache cost beside ``GET /livez``? CPU of the whole gateway process, over a socket.

A client key, records and access lines are on. The limit is 1.5 × ``GET /livez`` plus the hash of the request's body; by turns, and of
each the least of the rounds. Exit status 1 when a hit costs more. What its client waits is less: records are made after the answer.

    python benchmarks/load/cached.py [ROUNDS]
"""
import hashlib
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.load.processes import cpu_us, free_port

SHARE, CALLS = 1.5, 500
CONFIG = """
[server]
port = {port}
[store]
url = "sqlite:{folder}/bench.db"
[cache]
enabled = true
[[auth.keys]]
name = "bench"
key = "sk-bench"
[[providers]]
preset = "demo"
"""
LIVEZ = b"GET /livez HTTP/1.1\r\nHost: x\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate\r\nUser-Agent: python-httpx/0.28\r\n\r\n"


def asking(prompt: str, stream: bool) -> tuple[bytes, bytes]:
    """(a request, its body)."""
    body = json.dumps({"model": "demo/demo", "messages": [{"role": "user", "content": prompt}], "stream": stream}).encode()
    return (b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sk-bench\r\nContent-Type: application/json\r\n"
            b"Accept: */*\r\nAccept-Encoding: gzip, deflate\r\nUser-Agent: python-httpx/0.28\r\nContent-Length: %d\r\n\r\n" % len(body)
            ) + body, body


class Wire:
    """One connection that is kept."""

    def __init__(self, port: int) -> None:
        deadline = time.monotonic() + 20
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", port), 20)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def say(self, request: bytes) -> bytes:
        self.socket.sendall(request)
        got = self.socket.recv(262_144)
        head, _, rest = got.partition(b"\r\n\r\n")
        length = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), None)
        while (len(rest) < length) if length is not None else not rest.endswith(b"0\r\n\r\n"):
            rest += self.socket.recv(262_144)
        return head


def main() -> int:
    rounds, over = int(sys.argv[1]) if len(sys.argv) > 1 else 12, False
    asked = {f"{'stream' if stream else 'whole'}, {kb} KB asked": asking("hello there, how is it? " * max(1, kb * 42), stream)
             for kb in (0, 100) for stream in (False, True)}
    with tempfile.TemporaryDirectory() as folder:
        port, file = free_port(), Path(folder, "gateway.toml")
        file.write_text(CONFIG.format(port=port, folder=folder), encoding="utf-8")
        gateway = subprocess.Popen([sys.executable, "-m", "gateway", "serve", "--config", str(file)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        wire = None
        try:
            wire = Wire(port)
            for request, _ in asked.values():
                wire.say(request)
                assert b"X-FreeLLM-Cache: HIT" in wire.say(request), wire.say(request)
            best = {LIVEZ: float("inf"), **{request: float("inf") for request, _ in asked.values()}}
            waits = dict(best)
            for _ in range(rounds):
                for request in best:
                    began, waited = cpu_us(gateway.pid), []
                    for _ in range(CALLS):
                        since = time.perf_counter_ns()
                        wire.say(request)
                        waited.append((time.perf_counter_ns() - since) / 1e3)
                    waits[request] = min(waits[request], statistics.median(waited))
                    best[request] = min(best[request], (cpu_us(gateway.pid) - began) / CALLS)
        finally:
            if wire is not None:
                wire.socket.close()
            gateway.terminate()
            gateway.wait()
    livez = best[LIVEZ]
    print(f"GET /livez {livez:.1f} µs of CPU, answered in {waits[LIVEZ]:.0f} µs (p50)\n")
    print("| a hit | CPU µs | the hash, µs | × GET /livez, without the hash | answered in, µs (p50) | × GET /livez | |")
    print("|---|---:|---:|---:|---:|---:|---|")
    for name, (request, body) in asked.items():
        began = time.process_time_ns()
        for _ in range(500):
            hashlib.sha256(body).digest()
        hashed = (time.process_time_ns() - began) / 500 / 1e3
        late = best[request] > SHARE * livez + hashed
        over |= late
        print(f"| {name} | {best[request]:.1f} | {hashed:.1f} | {(best[request] - hashed) / livez:.2f} "
              f"| {waits[request]:.0f} | {waits[request] / waits[LIVEZ]:.2f} | {'over' if late else ''} |")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
