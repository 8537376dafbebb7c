"""How do lines get out without ever holding up the gateway? One daemon thread, a bounded queue, and what does not fit is counted.

A log pipe that nobody reads blocks its writer. Here that is a thread of its own which owns the file descriptor: requests go
on, stopping waits for it a second at most. Python's buffered streams are not used, since a blocked one keeps its lock and the
interpreter would wait for that at its end.
"""
import logging
import os
import threading
from collections import deque
from typing import Any, Final

MAX_LINES: Final = 20_000
CLOSE_S: Final = 1.0
PAUSE_S: Final = 0.1             # between two writes: waking a thread for each line costs a request a tenth


class LineWriter:
    """Writes lines to a file descriptor. ``put`` may be called from any thread and never blocks."""

    def __init__(self, fd: int = 2, max_lines: int = MAX_LINES) -> None:
        self._fd = fd
        self._max = max_lines
        self._lines: deque[str] = deque()
        self._wake = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._hurry = threading.Event()
        self._thread: threading.Thread | None = None
        self.dropped = 0

    def put(self, line: str) -> None:
        """``line`` ends with a line feed."""
        if len(self._lines) >= self._max:
            self.dropped += 1
            return
        self._lines.append(line)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="log lines", daemon=True)
            self._thread.start()
        if not self._wake.is_set():
            self._idle.clear()
            self._wake.set()

    def close(self) -> None:
        """Wait until all is written, a second at most."""
        self._hurry.set()
        self._idle.wait(CLOSE_S)

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            while self._lines:
                self._write(self._batch())
            if not self._wake.is_set():
                self._idle.set()
            self._hurry.wait(PAUSE_S)

    def _batch(self) -> bytes:
        lines: list[str] = []
        while self._lines and len(lines) < 1_000:
            lines.append(self._lines.popleft())
        if self.dropped:
            lines.append(f"{self.dropped} lines dropped: the log is read too slowly\n")
            self.dropped = 0
        return "".join(lines).encode("utf-8", "backslashreplace")

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._fd, view):]
            except OSError:
                return                               # nobody reads the log any more; requests go on


FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
# What ends a line, or moves a terminal's cursor: a message may repeat what a stranger wrote, and must not look like another one.
_ESCAPED: Final = {code: repr(chr(code))[1:-1] for code in (*range(0x20), *range(0x7f, 0xa0), 0x2028, 0x2029) if code != 9}


class OneLine(logging.Formatter):
    """A message is one line; where an exception came from follows, set in."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return super().formatMessage(record).translate(_ESCAPED)

    def formatException(self, ei: Any) -> str:
        return "\n".join("    " + line.translate(_ESCAPED) for line in super().formatException(ei).split("\n"))


class LineHandler(logging.Handler):
    """``logging`` through a LineWriter."""

    def __init__(self, writer: LineWriter) -> None:
        super().__init__()
        self._writer = writer
        self.setFormatter(OneLine(FORMAT))

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._writer.put(self.format(record) + "\n")
        except Exception:
            self.handleError(record)
