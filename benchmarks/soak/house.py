"""A gateway in a process of its own before providers of which two fail in every way, and what the system says of that process."""
import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Self

import aiohttp
import msgspec

from benchmarks.soak.load import KEY
from gateway.mock import script as say
from gateway.mock.upstream import Asked, Upstream

TEXTS = tuple(f"word{n} " for n in range(30))
CONFIG = """
[auth]
[[auth.keys]]
name = "soak"
key = "{key}"
[routing]
transient_cooldown_s = 2
[timeouts]
first_byte_s = 1
first_token_s = 1
idle_s = 1
[ollama]
mode = "key"
[log]
level = "error"
{providers}
{combos}
"""
# Many models, since each rests alone after a fault: else two providers would be asked now and then only.
MODELS = 40
COMBO = '[[combos]]\nname = "best{n}"\nstrategy = "round-robin"\ntargets = ["a/m{n}", "b/m{n}", "c/m{n}"]\n'
PROVIDER = '[[providers]]\nid = "{id}"\nbase_url = "{url}"\napi_keys = ["sk-soak-{id}-1", "sk-soak-{id}-2"]\nmodels = [{models}]\n'

FAULTS = (
    say.reset_before_headers(), say.close_before_headers(), say.reset_after_headers(), say.hang(), say.stall(), say.stall("begun "),
    say.half_frame("begun "), say.html(200), say.html(502), say.error(500), say.error(429, "slow down"), say.error(503, "overloaded"),
    say.error(200, "it broke"), say.garbage(), say.cut_length(), say.cut_chunked("begun "), say.stream(), say.body_of(b""),
    say.stream("begun ", "again ").but(say.Reset(), after=2),
)


def answering(dice: Random, failing: float) -> Callable[[Asked], say.Script]:
    """Answers of one provider: so many of them faults, the others quick, slow or long."""
    def answer(asked: Asked) -> say.Script:
        if dice.random() < failing:
            return dice.choice(FAULTS)
        if not asked.json().get("stream"):
            return say.reply("A whole answer. " * dice.randint(1, 200))
        if dice.random() < 0.05:
            return say.tool_stream("look", ['{"at": ', '"this"}'])
        return say.stream(*TEXTS[:dice.randint(1, 30)], delay_s=dice.choice((0.0, 0.0, 0.005, 0.02)))
    return answer


class Sample(msgspec.Struct):
    """One look at the process."""
    at_s: float
    rss_kb: int
    fds: int
    sockets: int
    threads: int
    tasks: int
    in_flight: int


class House:
    """``async with House(folder, seed) as house``: providers and the gateway's process."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._ups = {id: Upstream(answering(Random(seed + n), failing)) for n, (id, failing) in
                     enumerate({"a": 0.3, "b": 0.1, "c": 0.0}.items())}
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    async def __aenter__(self) -> Self:
        for up in self._ups.values():
            await up.start()
        models = ", ".join(f'"m{n}"' for n in range(MODELS))
        providers = "".join(PROVIDER.format(id=id, url=up.base_url, models=models) for id, up in self._ups.items())
        combos = "".join(COMBO.format(n=n) for n in range(MODELS))
        (self._folder / "gateway.toml").write_text(CONFIG.format(key=KEY, providers=providers, combos=combos), encoding="utf-8")
        env = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH", "GATEWAY_LOOP") if name in os.environ}
        command = [sys.executable, "-m", "gateway", "serve", "--port", "0"]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(command, cwd=self._folder, env={**env, "HOME": str(self._folder)}, text=True,
                                             stdout=subprocess.PIPE, stderr=log)
        assert self._process.stdout is not None
        self.url = (await asyncio.to_thread(self._process.stdout.readline)).split()[-1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        process = self._process
        if process is not None and process.stdout is not None:
            process.send_signal(signal.SIGTERM)
            try:
                await asyncio.to_thread(process.wait, 20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
        for up in self._ups.values():
            await up.stop()

    def reload(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGHUP)

    @property
    def complaints(self) -> list[str]:
        """What the log holds besides a line for each request."""
        lines = (self._folder / "log").read_text(encoding="utf-8").splitlines()
        return [line for line in lines if not line.startswith("time=")]

    async def sample(self, session: aiohttp.ClientSession, at_s: float) -> Sample:
        assert self._process is not None
        proc = Path(f"/proc/{self._process.pid}")
        status = (proc / "status").read_text(encoding="ascii")
        links = [_link(one) for one in (proc / "fd").iterdir()]
        async with session.get(self.url + "/metrics", headers={"Authorization": f"Bearer {KEY}"}) as got:
            page = await got.text()

        def number(pattern: str, text: str) -> int:
            found = re.search(pattern, text, re.M)
            return int(float(found[1])) if found else 0

        return Sample(at_s=round(at_s, 1), rss_kb=number(r"^VmRSS:\s+(\d+)", status), threads=number(r"^Threads:\s+(\d+)", status),
                      fds=len(links), sockets=sum(link.startswith("socket:") for link in links),
                      tasks=number(r"^gateway_tasks (\S+)", page), in_flight=number(r"^gateway_in_flight_requests (\S+)", page))


def _link(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
