"""How is the program replaced while it serves? By a process of the same command that takes over the listening sockets.

The sockets stay open all the time, so nobody is refused. The successor says through a pipe that it accepts; only then does this
process stop accepting and drain. One that does not come up changes nothing.
"""
import asyncio
import logging
import os
import subprocess
import sys
from contextlib import suppress
from typing import Final

from gateway.server import systemd
from gateway.server.sockets import INHERITED

log = logging.getLogger("gateway.handover")

TOLD_BY: Final = "GATEWAY_READY_FD"                   # the pipe of a successor
START_S: Final = 60.0
_NOT_ITS_OWN: Final = ("WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


def command() -> list[str]:
    """What started this process, by the interpreter that runs it."""
    return [sys.executable, *sys.orig_argv[1:]]


def accepting() -> None:
    """Tell the process before us, if there is one, that it may go."""
    told = os.environ.pop(TOLD_BY, "")
    if told.isdecimal():
        with suppress(OSError):
            os.write(int(told), b"1")
            os.close(int(told))


async def hand_over(descriptors: list[int], starting: list[str] | None = None) -> bool:
    """Start a successor on these sockets; True when it accepts."""
    if os.getpid() == 1:
        log.error("not handed over: a container ends with its first process; start another one beside it")
        return False
    try:
        process, told = await asyncio.to_thread(_spawn, descriptors, starting or command())
    except OSError as error:
        log.error("not handed over: the successor cannot be started: %s", error.strerror or error)
        return False
    if await _accepts(told):
        systemd.notify(f"MAINPID={process.pid}")
        log.info("process %d has taken over", process.pid)
        return True
    process.kill()
    await asyncio.to_thread(process.wait)
    log.error("not handed over: the successor did not come up; this process goes on")
    return False


def _spawn(descriptors: list[int], starting: list[str]) -> tuple["subprocess.Popen[bytes]", int]:
    """(the successor, our end of its pipe)"""
    told, tell = os.pipe()
    env = {name: value for name, value in os.environ.items() if name not in _NOT_ITS_OWN}
    env |= {INHERITED: ",".join(map(str, descriptors)), TOLD_BY: str(tell)}
    try:
        return subprocess.Popen(starting, env=env, pass_fds=(*descriptors, tell)), told
    except OSError:
        os.close(told)
        raise
    finally:
        os.close(tell)


async def _accepts(told: int) -> bool:
    """Did it say so, before it ended and in time?"""
    loop = asyncio.get_running_loop()
    said: asyncio.Future[bytes] = loop.create_future()

    def readable() -> None:
        if not said.done():
            said.set_result(os.read(told, 1))

    loop.add_reader(told, readable)
    try:
        async with asyncio.timeout(START_S):
            return await said == b"1"
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(told)
        os.close(told)
