"""One line per finished request: who, what, whom, how it ended, how long. Buffered, bounded, never on the request's way.

Lines are made by orjson or a format string (about 1 µs) and written by a thread every 200 ms; above ``MAX_LINES`` waiting
lines new ones are dropped and counted, since a stalled pipe must not stall the gateway.
"""
import asyncio
import re
import sys
import time
from functools import lru_cache
from typing import TextIO

import orjson

from gateway.core.call import Call

FLUSH_S = 0.2
MAX_LINES = 20_000
_PLAIN = re.compile(r"[\w./:+@-]+").fullmatch
QUIET = {"warning", "error", "critical"}            # log levels at which only failures are written


class AccessLog:
    """A Journal that writes lines. ``format``: text or json."""

    def __init__(self, format: str = "text", level: str = "info", out: TextIO | None = None) -> None:
        self._json = format == "json"
        self._quiet = level in QUIET
        self._out = out or sys.stderr
        self._lines: list[str] = []
        self.dropped = 0
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Future[None] | None = None

    def add(self, call: Call) -> None:
        if self._quiet and call.outcome == "ok":
            return
        if len(self._lines) >= MAX_LINES:
            self.dropped += 1
            return
        self._lines.append(json_line(call) if self._json else text_line(call))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_S, self._flush)

    def _flush(self) -> None:
        self._timer = None
        if not self._lines:
            return
        if self._writing is not None and not self._writing.done():
            self._timer = asyncio.get_running_loop().call_later(FLUSH_S, self._flush)
            return
        lines, self._lines = self._lines, []
        if self.dropped:
            lines.append(f"{self.dropped} lines dropped: the log is read too slowly\n")
            self.dropped = 0
        self._writing = asyncio.get_running_loop().run_in_executor(None, self._write, "".join(lines))

    def _write(self, text: str) -> None:
        try:
            self._out.write(text)
            self._out.flush()
        except (OSError, ValueError):
            pass                                     # nobody reads the log any more; requests go on

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._writing is not None:
            await self._writing
        if self._lines:
            self._write("".join(self._lines))
            self._lines = []


def facts(call: Call) -> dict[str, object]:
    """The fields of a line; times in milliseconds, tokens as the answer's usage says."""
    usage, request = call.usage, call.request
    started = call.started
    return {
        "time": stamp(int(call.wall)), "id": call.id, "surface": call.surface, "key": call.principal or None,
        "model": request.model if request is not None else None, "routed": call.routed or None, "status": call.status,
        "outcome": call.outcome, "attempts": len(call.attempts), "ms": int((call.ended - started) * 10_000) / 10,
        "ttft_ms": int((call.first_token_at - started) * 10_000) / 10 if call.first_token_at else None,
        "in": usage.input if usage is not None else None, "out": usage.output if usage is not None else None,
        "stream": call.stream, "finish": call.finish or None, "error": call.error.kind if call.error is not None else None,
    }


@lru_cache(maxsize=4)
def stamp(wall: int) -> str:
    """A second in ISO form; hundreds of requests share it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(wall))


def json_line(call: Call) -> str:
    return orjson.dumps(facts(call)).decode() + "\n"


def text_line(call: Call) -> str:
    """``name=value`` of everything that is known; the client's own words are quoted where they could be mistaken."""
    usage, request, started = call.usage, call.request, call.started
    line = (f"time={stamp(int(call.wall))} id={call.id} surface={call.surface} status={call.status} outcome={call.outcome}"
            f" attempts={len(call.attempts)} ms={(call.ended - started) * 1000:.1f}")
    if call.first_token_at:
        line += f" ttft_ms={(call.first_token_at - started) * 1000:.1f}"
    if request is not None:
        line += f" model={quoted(request.model)}"
    if call.routed:
        line += f" routed={quoted(call.routed)} finish={call.finish}"
    if usage is not None:
        line += f" in={usage.input} out={usage.output}"
    if call.principal:
        line += f" key={quoted(call.principal)}"
    if call.error is not None:
        line += f" error={call.error.kind}"
    return line + "\n"


def quoted(value: str) -> str:
    return value if _PLAIN(value) else orjson.dumps(value).decode()
