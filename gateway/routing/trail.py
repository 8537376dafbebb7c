"""What was tried before? The failed hops of a request as headers and as a sentence; keys only appear by number."""
from collections.abc import Iterable, Sequence
from typing import Final

from gateway.core.call import Attempt
from gateway.core.redact import without

TRAIL_HOPS: Final = 10
TRAIL_CHARS: Final = 1024
DETAIL_CHARS: Final = 2048
MESSAGE_CHARS: Final = 120
VALUE_CHARS: Final = 256


def encode(text: str, limit: int = VALUE_CHARS) -> str:
    """Header-safe: everything but printable ASCII, and the percent sign, as percent-encoded UTF-8; cut between characters."""
    if text.isascii() and text.isprintable() and "%" not in text:
        return text[:limit]
    out: list[str] = []
    left = limit
    for char in text:
        piece = char if " " <= char <= "~" and char != "%" else "".join(f"%{b:02X}" for b in char.encode("utf-8", "replace"))
        left -= len(piece)
        if left < 0:
            break
        out.append(piece)
    return "".join(out)


def route_headers(label: str, attempts: Sequence[Attempt], detail: bool, started: float,
                  secrets: Sequence[str] = ()) -> dict[str, str]:
    """X-Routed-Via of who answered ("" = nobody), and the X-Fallback headers when a hop failed before the commit point. Messages
    are told without these secrets: a provider may repeat a prompt that names one, and headers end in the logs of proxies."""
    headers = {"X-Routed-Via": encode(label)} if label else {}
    if len(attempts) == 1 and attempts[0].error is None:
        return headers
    hops = failed(attempts)
    if hops:
        headers["X-Fallback-Attempts"] = str(len(hops))
        headers["X-Fallback-Trail"] = _joined([_hop(hop) for hop in hops], TRAIL_HOPS, TRAIL_CHARS)
        if detail:
            headers["X-Fallback-Detail"] = _joined([_detail(hop, started, secrets) for hop in hops], len(hops), DETAIL_CHARS)
    return headers


def failed(attempts: Iterable[Attempt]) -> list[Attempt]:
    """The hops that failed while another target could still take over, and those that another one outran."""
    return [attempt for attempt in attempts if attempt.hedged or (attempt.error is not None and not attempt.committed)]


def sentence(attempts: Sequence[Attempt]) -> str:
    """The trail inside an error message: ``a/m key1: timeout; b/m key2: rate_limited``."""
    told = [f"{hop.label} key{hop.key}: {hop.error.kind}" for hop in attempts[:TRAIL_HOPS] if hop.error is not None]
    more = len(attempts) - TRAIL_HOPS
    return "; ".join(told) + (f"; +{more} more" if more > 0 else "")


def _hop(hop: Attempt) -> str:
    return f"{encode(hop.label)} key{hop.key}={hop.error.kind if hop.error is not None else 'hedged'}"


def _detail(hop: Attempt, started: float, secrets: Sequence[str]) -> str:
    offset_ms, took_ms = round((hop.started - started) * 1000), round((hop.ended - hop.started) * 1000)
    said = without(hop.error.message, secrets) if hop.error is not None else "another was first"
    message = encode(said.replace(";", ","), MESSAGE_CHARS)
    return f"{_hop(hop)} t={offset_ms}+{took_ms}ms msg={message}"


def _joined(hops: list[str], most: int, limit: int) -> str:
    """As many whole hops as fit, then how many more there were."""
    told = 0
    length = 0
    for hop in hops[:most]:
        length += len(hop) + 2
        if length > limit - len("; +99 more"):
            break
        told += 1
    rest = len(hops) - told
    return "; ".join(hops[:told] + ([f"+{rest} more"] if rest else []))
