"""What is every table of gateway.toml made of? Its base, and the types of values that several tables share."""
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=0)]
Size = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(ge=0, le=86_400)]
Dollars = Annotated[float, Meta(ge=0)]
Strategy = Literal["priority", "weighted", "round-robin", "context-relay", "fill-first", "p2c", "random", "least-used",
                   "cost-optimized", "reset-aware", "reset-window", "headroom", "strict-random", "auto", "lkgp",
                   "context-optimized", "fusion", "cache-optimized", "bandit"]
Share = Annotated[float, Meta(ge=0, le=1)]


def doc(text: str) -> Meta:
    """The documentation of one key."""
    return Meta(description=text)


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all tables. They print as their names: headers, addresses and free tables may hold secrets."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"
