"""Does anything block the event loop? ``Watch`` notes every call that waits for a disk, a name, a process or a lock on its thread.

Most of them are heard by the interpreter's own audit events (https://docs.python.org/3/library/audit_events.html), which miss nobody
who kept a reference; what has no event is wrapped where it lives.
"""
import concurrent.futures
import os
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

EVENTS = frozenset({
    "open", "os.listdir", "os.scandir", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.system", "os.fork",
    "os.posix_spawn", "os.exec", "subprocess.Popen", "sqlite3.connect", "socket.getaddrinfo", "socket.gethostbyname",
    "socket.gethostbyaddr", "socket.getnameinfo", "urllib.Request", "glob.glob", "shutil.copyfile", "shutil.rmtree",
    "tempfile.mkstemp", "tempfile.mkdtemp",
})


def always(*args: Any, **more: Any) -> bool:
    return True


# Without an event of their own: (owner, name, does such a call wait?). Events and queues wait by a condition.
WRAPPED: tuple[tuple[Any, str, Callable[..., bool]], ...] = (
    (time, "sleep", always), (os, "stat", always), (os, "fsync", always),
    (threading.Condition, "wait", lambda self, timeout=None: timeout is None or timeout > 0),
    (threading.Thread, "join", lambda self, timeout=None: self.is_alive()),
    (concurrent.futures.Future, "result", lambda self, timeout=None: not self.done()),
)
IGNORED = ("<frozen importlib", "/linecache.py", "/tests/chaos/watch.py")
OURS = f"{os.sep}gateway{os.sep}"


class Watch:
    """``with Watch() as watch:`` around what the loop does; ``watch.seen`` has (what, where) of each blocking call."""

    active: "Watch | None" = None
    _hooked = False

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        self.thread = threading.get_ident()
        self._originals: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> Self:
        if not Watch._hooked:
            sys.addaudithook(_heard)             # cannot be taken off; without an active watch it does nothing
            Watch._hooked = True
        for owner, name, waits in WRAPPED:
            original = getattr(owner, name)
            self._originals.append((owner, name, original))
            setattr(owner, name, _noting(f"{owner.__name__}.{name}", original, waits))
        Watch.active = self
        return self

    def __exit__(self, *exc: object) -> None:
        Watch.active = None
        for owner, name, original in self._originals:
            setattr(owner, name, original)

    def note(self, what: str) -> None:
        frames = list(_frames(sys._getframe(1)))
        files = [frame.f_code.co_filename for frame in frames]
        if any(part in file for file in files for part in IGNORED[:2]) or _starts_a_thread(frames):
            return
        told = [f"{frame.f_code.co_filename}:{frame.f_lineno}" for frame in frames if IGNORED[2] not in frame.f_code.co_filename]
        self.seen.append((what, next((where for where in told if OURS in where), told[0])))


def _frames(frame: FrameType | None):
    while frame is not None:
        yield frame
        frame = frame.f_back


def _starts_a_thread(frames: list[FrameType]) -> bool:
    """A pool that grows waits until its new thread runs."""
    return any(frame.f_code is threading.Thread.start.__code__ for frame in frames)


def _heard(event: str, args: tuple[Any, ...]) -> None:
    watch = Watch.active
    if watch is not None and event in EVENTS and threading.get_ident() == watch.thread:
        watch.note(event)


def _noting(name: str, original: Any, waits: Callable[..., bool]) -> Any:
    def wrapped(*args: Any, **more: Any) -> Any:
        watch = Watch.active
        if watch is not None and threading.get_ident() == watch.thread and waits(*args, **more):
            watch.note(name)
        return original(*args, **more)
    return wrapped
