"""Nodes as an operator starts them: ``gateway serve`` processes with workers, on free ports, ended with the test."""
import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable

import aiohttp
import msgspec


class Node:
    """One ``gateway serve``. ``pids`` are its workers'."""

    def __init__(self, folder, config: str, *options: str) -> None:
        folder.mkdir()
        (folder / "gateway.toml").write_text(config)
        clean = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH", "GATEWAY_LOOP") if name in os.environ}
        self.log = folder / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen([sys.executable, "-m", "gateway", "serve", "--port", "0", *options], cwd=folder,
                                            env={**clean, "HOME": str(folder)}, stdout=subprocess.PIPE, stderr=log, text=True)
        self.url = ""

    async def ready(self) -> str:
        line = await asyncio.to_thread(self.process.stdout.readline)
        assert line, self.log.read_text()
        self.url = line.split()[-1]
        return self.url

    @property
    def pids(self) -> list[int]:
        parent = self.process.pid
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    with open(f"/proc/{name}/stat") as file:
                        if file.read().rpartition(")")[2].split()[1] == str(parent):
                            found.append(int(name))
                except OSError:
                    continue
        return sorted(found)

    def signal(self, name: int) -> None:
        self.process.send_signal(name)

    async def ended(self) -> int:
        return await asyncio.to_thread(self.process.wait, 20)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
        self.process.stdout.close()


async def ask(url: str, path: str = "/v1/chat/completions", key: str = "gw-test-key", **more) -> tuple[int, bytes, dict[str, str]]:
    """A new connection for each request, so that every worker gets some."""
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}], **more}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session, \
            session.post(url + path, json=body, headers={"Authorization": f"Bearer {key}"}) as answer:
        return answer.status, await answer.read(), dict(answer.headers)


async def get(url: str, path: str) -> bytes:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session, session.get(url + path) as answer:
        return await answer.read()


async def get_json(url: str, path: str):
    return msgspec.json.decode(await get(url, path))


async def until(true: Callable[[], object], seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not true():
            await asyncio.sleep(0.02)
