"""On which sockets does the gateway accept? Its own, those the service manager opened, or those of the process before it.

A socket that outlives the process refuses nobody: while one process goes and the next one comes, connections wait in its queue.
"""
import os
import socket
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from gateway.server import systemd

INHERITED: Final = "GATEWAY_SOCKETS"                  # "7,8": descriptors from the process before
BACKLOG: Final = 4096
# Python 3.13 takes a socket's file away with the listener; ours may have a successor that listens on it.
KEEP_FILE: Final[dict[str, Any]] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}


class Sockets(msgspec.Struct):
    """Listening sockets by what they speak; ``given``: somebody else bound them."""
    tcp: list[socket.socket]
    unix: list[socket.socket]
    given: bool = False

    def all(self) -> list[socket.socket]:
        return [*self.tcp, *self.unix]

    def close(self) -> None:
        for one in self.all():
            one.close()


def inherited() -> Sockets:
    """What was opened for us; none of it where nothing was. The environment forgets it: our children are not meant."""
    told = os.environ.pop(INHERITED, "")
    numbers = [int(number) for number in told.split(",") if number.isdecimal()] or systemd.given()
    for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"):
        os.environ.pop(name, None)
    found = Sockets([], [], given=bool(numbers))
    for number in numbers:
        os.set_inheritable(number, False)
        one = socket.socket(fileno=number)
        one.setblocking(False)
        (found.unix if one.family == socket.AF_UNIX else found.tcp).append(one)
    return found


def bound_unix(path: str) -> socket.socket:
    """A socket at this path, in place of one that a dead process left. Raises OSError."""
    with suppress(FileNotFoundError):
        if stat.S_ISSOCK(os.stat(path).st_mode):
            Path(path).unlink()
    one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        one.bind(path)
        one.listen(BACKLOG)
        one.setblocking(False)
    except OSError:
        one.close()
        raise
    return one
