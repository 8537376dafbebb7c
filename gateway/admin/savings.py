"""What does the gateway save? Answers that were given again, and prompts that were made smaller, where this version does."""
from typing import Any

import msgspec

from gateway.admin.errand import Ask, Errand, Facts
from gateway.pipeline import shrink
from gateway.pipeline.aside import alone


class CacheStatus(Facts, frozen=True):
    """Whole answers, replayed; counts since the start. ``always``: for every client; else for those that ask for it."""
    always: bool
    ttl_s: float
    entries: int
    bytes: int
    max_entries: int
    max_bytes: int
    under_way: int
    hit_rate: float | None
    hits: int
    misses: int
    waited: int
    stored: int
    evicted: int
    too_large: int
    saved_input_tokens: int
    saved_output_tokens: int


class CompressionStatus(Facts, frozen=True):
    """Prompts, made smaller. ``counts``: whatever is counted, by name."""
    mode: str
    counts: dict[str, Any]


class Savings(Facts, frozen=True):
    """Both."""
    cache: CacheStatus
    compression: CompressionStatus


class Cleared(Facts, frozen=True):
    """How many answers are gone."""
    cleared: int


async def savings(visit: Errand) -> Savings:
    ground = visit.ground
    settings, config = ground.snapshot.cache, ground.snapshot.config
    cache = {**ground.replays.status(), "always": settings.enabled, "ttl_s": settings.ttl_s}
    return Savings(cache=msgspec.convert(cache, CacheStatus),
                   compression=CompressionStatus(mode=config.compression.mode, counts=shrink.status(ground)))


class Preview(Ask, frozen=True):
    """A request's body, and how far it is to go. Nothing is sent to anybody."""
    body: dict[str, Any]
    wire: str = "openai-chat"
    mode: str = "standard"


class Previewed(Facts, frozen=True):
    """What would be sent. ``stages``: engine by engine, with what the fidelity gate discarded and why."""
    mode: str
    chars_before: int
    chars_after: int
    tokens_before: int
    saved_tokens: int
    ms: float
    stages: list[dict[str, Any]]
    body: str


async def preview(visit: Errand) -> Previewed:
    asked: Preview = visit.body
    told = await alone(shrink.preview, msgspec.json.encode(asked.body), asked.wire, asked.mode, visit.ground)
    return msgspec.convert(told, Previewed)


async def clear(visit: Errand) -> Cleared:
    n = visit.ground.replays.clear()
    visit.note("cache.clear", "", f"{n} answers")
    return Cleared(cleared=n)
