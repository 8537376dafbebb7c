"""One line per finished request: who, what, whom, how it ended, how long. Never on the request's way (observe/lines.py)."""
import re
import time
from functools import lru_cache
from typing import Final

import orjson

from gateway.core.call import Call
from gateway.observe.lines import LineWriter
from gateway.observe.recent import Recent

_PLAIN = re.compile(r"[\w./:+@-]+").fullmatch
QUIET: Final = frozenset({"warning", "error", "critical"})      # log levels at which only failures are written


class AccessLog:
    """A Journal that writes lines. ``format``: text or json."""

    def __init__(self, format: str = "text", level: str = "info", writer: LineWriter | None = None,
                 recent: Recent | None = None) -> None:
        self._line = json_line if format == "json" else text_line
        self._quiet = level in QUIET
        self._writer = writer or LineWriter()
        self._recent = recent

    def add(self, call: Call) -> None:
        if call.outcome != "ok" or not self._quiet:
            line = self._line(call)
            self._writer.put(line)
            if self._recent is not None:
                self._recent.put(line)

    async def close(self) -> None:
        self._writer.close()


def facts(call: Call) -> dict[str, object]:
    """The fields of a line; times in milliseconds, tokens as the answer's usage says."""
    usage, request = call.usage, call.request
    started = call.started
    return {
        "time": stamp(int(call.wall)), "id": call.id, "surface": call.surface, "key": call.principal or None,
        "model": (request.model if request is not None else call.path_model) or None, "routed": call.routed or None,
        "status": call.status,
        "outcome": call.outcome, "attempts": len(call.attempts), "ms": int((call.ended - started) * 10_000) / 10,
        "ttft_ms": int((call.first_token_at - started) * 10_000) / 10 if call.first_token_at else None,
        "in": usage.input if usage is not None else None, "out": usage.output if usage is not None else None,
        "stream": call.stream, "finish": call.finish or None, "error": call.error.kind if call.error is not None else None,
        **({"role": call.role} if call.role else {}),
        **({"guards": [f"{one.what} {one.action} {one.count}" for one in call.remarks]} if call.remarks else {}),
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
    ttft = f" ttft_ms={(call.first_token_at - started) * 1000:.1f}" if call.first_token_at else ""
    asked = request.model if request is not None else call.path_model
    model = f" model={quoted(asked)}" if asked else ""
    routed = f" routed={quoted(call.routed)} finish={call.finish}" if call.routed else ""
    tokens = f" in={usage.input} out={usage.output}" if usage is not None else ""
    key = f" key={quoted(call.principal)}" if call.principal else ""
    error = f" error={call.error.kind}" if call.error is not None else ""
    guards = " guards=" + quoted(", ".join([f"{one.what} {one.action} {one.count}" for one in call.remarks])) if call.remarks else ""
    role = f" role={call.role}" if call.role else ""
    return (f"time={stamp(int(call.wall))} id={call.id} surface={call.surface} status={call.status} outcome={call.outcome}"
            f" attempts={len(call.attempts)} ms={(call.ended - started) * 1000:.1f}{ttft}{model}{routed}{tokens}"
            f"{key}{error}{guards}{role}\n")


@lru_cache(maxsize=1_024)
def quoted(value: str) -> str:
    return value if _PLAIN(value) else orjson.dumps(value).decode()
