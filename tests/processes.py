"""``gateway serve`` as real processes of a test's own, in an empty folder and without anybody's keys."""
import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

# What a service manager does between fork and exec
ACTIVATE = """import os, sys
os.dup2(int(sys.argv[1]), 3)
os.execve(sys.argv[2], sys.argv[2:], {**os.environ, "LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())})"""


class Served:
    """One ``gateway serve`` and whoever succeeds it; ``end()`` ends all of them. ``socket``: a listening one, as systemd gives it."""

    def __init__(self, folder: Path, config: str, *options: str, socket: int = -1, **environment: str):
        (folder / "gateway.toml").write_text(config, encoding="utf-8")
        clean = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH", "GATEWAY_LOOP") if name in os.environ}
        command = [sys.executable, "-m", "gateway", "serve", *options]
        if socket >= 0:
            command = [sys.executable, "-c", ACTIVATE, str(socket), *command]
        self.log = folder / "log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, cwd=folder, env={**clean, "HOME": str(folder), **environment}, text=True,
                                            stdout=subprocess.PIPE, stderr=log, pass_fds=(socket,) * (socket >= 0), start_new_session=True)

    async def url(self) -> str:
        """Where it, or the next one after it, says that it accepts."""
        line = await asyncio.wait_for(asyncio.to_thread(self.process.stdout.readline), 20)
        assert line, self.said()
        return line.split()[-1]

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def ended(self, within_s: float = 20) -> int:
        return await asyncio.to_thread(self.process.wait, within_s)

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
