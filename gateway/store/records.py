"""What is written down of a finished request? A Call as the values of its row and of its attempts' rows."""
import re
from typing import Any, Final

from gateway.core.call import Attempt, Call
from gateway.core.redact import clip

NAME_CHARS: Final = 200          # of names, as long as the configuration allows them
TEXT_CHARS: Final = 500          # of errors and decisions
_ODD: Final = re.compile("[\x00\ud800-\udfff]")

COUNTS: Final = ("input", "output", "cached", "cache_write", "reasoning", "estimated")
REQUEST: Final = ("id", "at", "request", "surface", "wire", "operation", "asked", "provider", "model", "routed", "key", "client",
                  "session", "strategy", "decision", "stream", "status", "outcome", "error", "message", "finish", "attempts", *COUNTS,
                  "cost_usd", "latency_ms", "ttft_ms", "upstream_ms", "overhead_ms", "bytes_in", "bytes_out", "role")
ATTEMPT: Final = ("request_id", "n", "provider", "model", "account", "status", "outcome", "error", "message", "started_ms",
                  "headers_ms", "ttft_ms", "ended_ms", "upstream_ms", *COUNTS, "cost_usd", "upstream_id", "upstream_model", "drift",
                  "role")


def insert(table: str, columns: tuple[str, ...]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


PUT_REQUEST: Final = insert("requests", REQUEST)
PUT_ATTEMPT: Final = insert("attempts", ATTEMPT)
_NOTHING: Final = (0, 0, 0, 0, 0, 0)


def request_values(id_: int, call: Call) -> tuple[Any, ...]:
    """In the order of ``REQUEST``."""
    asked, target = call.request, call.answering
    latency_s, upstream_s = max(call.ended - call.started, 0.0), call.upstream_s
    return (id_, call.wall, plain(call.id), call.surface, call.wire, call.operation,
            plain(asked.model if asked is not None else call.path_model),
            target.provider if target is not None else "", target.model if target is not None else "",
            plain(call.routed), call.principal, call.client, plain(call.session), call.strategy, plain(call.decision, TEXT_CHARS),
            int(call.stream), call.status, call.outcome, call.error.kind if call.error is not None else "",
            plain(call.error.message, TEXT_CHARS) if call.error is not None else "", plain(call.finish), len(call.attempts),
            *counts(call.usage), call.cost_usd, ms(latency_s),
            ms(call.first_token_at - call.started) if call.first_token_at else None,
            ms(upstream_s), ms(max(latency_s - upstream_s, 0.0)),
            len(asked.raw) if asked is not None else 0, call.bytes_out, call.role)


def attempt_values(id_: int, n: int, attempt: Attempt, started: float) -> tuple[Any, ...]:
    """In the order of ``ATTEMPT``; ``started``: when its request began, from where its times count."""
    error = attempt.error
    return (id_, n, attempt.provider, attempt.model, attempt.account, attempt.status, how(attempt),
            error.kind if error is not None else "", plain(error.message, TEXT_CHARS) if error is not None else "",
            ms(attempt.started - started), ms(attempt.headers_at - started) if attempt.headers_at else None,
            ms(attempt.first_token_at - started) if attempt.first_token_at else None, ms(attempt.ended - started),
            ms(attempt.upstream_s), *counts(attempt.usage), attempt.cost_usd, plain(attempt.upstream_id),
            plain(attempt.upstream_model), int(attempt.drift), attempt.role)


def how(attempt: Attempt) -> str:
    """The outcome of one attempt, in the words of a request's."""
    if attempt.error is None:
        return "ok"
    if attempt.error.kind == "client_gone":
        return "client_gone"
    return "broken" if attempt.committed else "failed"


def counts(usage: Any) -> tuple[int, ...]:
    if usage is None:
        return _NOTHING
    return usage.input, usage.output, usage.cached, usage.cache_write, usage.reasoning, int(usage.estimated)


def ms(seconds: float) -> float:
    """To the microsecond."""
    return int(seconds * 1_000_000) / 1_000


def plain(text: str, limit: int = NAME_CHARS) -> str:
    """What any database takes: bounded, without what is no text."""
    if len(text) > limit:
        text = clip(text, limit)
    return text if text.isprintable() else _ODD.sub("\ufffd", text)
