"""What does the service manager hear of us, and which sockets did it open for us? sd_notify(3) and sd_listen_fds(3), by hand.

Nothing is said where nobody listens: without ``NOTIFY_SOCKET`` every call is a look into the environment.
"""
import asyncio
import logging
import os
import socket
import time
from collections.abc import Mapping
from typing import Final

log = logging.getLogger("gateway.systemd")

FIRST_FD: Final = 3                               # SD_LISTEN_FDS_START
READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"
WATCHDOG: Final = "WATCHDOG=1"


def notify(text: str) -> bool:
    """Was it said? Never waits, never raises: a manager that does not listen is not our failure."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return False
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as way:
            way.setblocking(False)
            way.connect("\0" + address[1:] if address.startswith("@") else address)
            way.send(text.encode())
    except OSError as error:
        log.warning("the service manager could not be told %s: %s", text.partition("\n")[0], error.strerror or error)
        return False
    return True


def reloading() -> None:
    """Type=notify-reload wants the moment too: a READY before it belongs to the start."""
    notify(f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")


def given(environment: Mapping[str, str] | None = None) -> list[int]:
    """Descriptors of sockets that were opened for this very process."""
    env = os.environ if environment is None else environment
    if env.get("LISTEN_PID") != str(os.getpid()) or not env.get("LISTEN_FDS", "").isdecimal():
        return []
    return list(range(FIRST_FD, FIRST_FD + int(env["LISTEN_FDS"])))


def watchdog_s(environment: Mapping[str, str] | None = None) -> float:
    """How often the manager wants to hear that the loop turns: twice in its time; 0 where it does not care."""
    env = os.environ if environment is None else environment
    if env.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()) or not env.get("WATCHDOG_USEC", "").isdecimal():
        return 0.0
    return int(env["WATCHDOG_USEC"]) / 2_000_000


class Watchdog:
    """Says that the loop turns, from the loop: one that hangs is restarted."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        if self._every_s > 0:
            notify(WATCHDOG)
            self._timer = asyncio.get_running_loop().call_later(self._every_s, self.start)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
