"""What was written to the log lately? The last lines, kept for whoever looks; what must not be seen is masked when they do."""
import logging
from collections import deque
from collections.abc import Iterator
from typing import Final

from gateway.observe.lines import FORMAT, OneLine

MAX_LINES: Final = 2_000
MAX_CHARS: Final = 4_000


class Recent(logging.Handler):
    """The last lines of the access log and of ``logging``, with a number that only grows. ``put`` may be called from any thread."""

    def __init__(self, max_lines: int = MAX_LINES) -> None:
        super().__init__()
        self._lines: deque[str] = deque(maxlen=max_lines)
        self._n = 0
        self.setFormatter(OneLine(FORMAT))

    def put(self, line: str) -> None:
        self._lines.append(line)
        self._n += 1

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.put(self.format(record))
        except Exception:
            self.handleError(record)

    @property
    def last(self) -> int:
        """The number of the newest line; 0 = none yet."""
        return self._n

    def after(self, number: int, limit: int) -> Iterator[tuple[int, str]]:
        """(number, line) of the newest ``limit`` lines that came after ``number``, oldest first."""
        lines, last = list(self._lines), self._n
        first = last - len(lines) + 1
        for at, line in enumerate(lines[-limit:], max(first, last - limit + 1)):
            if at > number:
                yield at, line[:MAX_CHARS].rstrip("\n")
