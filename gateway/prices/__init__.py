"""What does a model charge, and what did an answer cost? Prices are facts bound to a model when the configuration compiles."""
from typing import Any, Protocol

import msgspec


class Tier(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for the whole request when its input is longer than ``above`` tokens; None = as below it."""
    above: int
    input: float | None = None
    output: float | None = None
    cached: float | None = None
    cache_write: float | None = None


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """US dollars per million tokens. ``source`` says who states it, ``as_of`` when that was looked up; both empty for an
    operator's own price."""
    input: float = 0.0
    output: float = 0.0
    cached: float | None = None              # input read from the provider's cache; None = as any input
    cache_write: float | None = None         # input written to it
    reasoning: float | None = None           # output that nobody reads; None = as any output
    tiers: tuple[Tier, ...] = ()             # ascending
    source: str = ""
    as_of: str = ""


class Tokens(Protocol):
    """What is counted of an answer (core.events.Usage): input with what the cache gave and took, output with reasoning."""
    @property
    def input(self) -> int: ...
    @property
    def output(self) -> int: ...
    @property
    def cached(self) -> int: ...
    @property
    def cache_write(self) -> int: ...
    @property
    def reasoning(self) -> int: ...


def cost(usage: Tokens | None, price: Price | None) -> float | None:
    """US dollars of one answer; None when either side is unknown, which is not the same as nothing."""
    if usage is None or price is None:
        return None
    rate = at(price, usage.input)
    read = min(max(usage.cached, 0), usage.input)
    written = min(max(usage.cache_write, 0), usage.input - read)
    thought = min(max(usage.reasoning, 0), usage.output)
    return (rate.input * (usage.input - read - written)
            + (rate.input if rate.cached is None else rate.cached) * read
            + (rate.input if rate.cache_write is None else rate.cache_write) * written
            + rate.output * (usage.output - thought)
            + (rate.output if rate.reasoning is None else rate.reasoning) * thought) / 1_000_000


def at(price: Price, n_input: int) -> Price:
    """The price of a request with this much input: beyond a tier's threshold its rates hold for all tokens."""
    for tier in reversed(price.tiers):
        if n_input > tier.above:
            stated = {name: value for name in ("input", "output", "cached", "cache_write")
                      if (value := getattr(tier, name)) is not None}
            return msgspec.structs.replace(price, **stated)
    return price


def as_data(price: Price | None) -> dict[str, Any] | None:
    """For lists: what is known of it, by name; None = unknown."""
    if price is None:
        return None
    found: dict[str, Any] = msgspec.to_builtins(price)
    return {name: value for name, value in found.items() if value not in (None, "", [], ())}
