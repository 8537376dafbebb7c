"""What does this provider charge for this model, as far as public data say? The offline table that scripts/build-catalog makes.

The table stands in prices.json: providers by catalogue id, models by the name that the provider uses. A name that is not
there is looked for once more without its date or ``-latest``; nothing is guessed beyond that, and a price of one provider
says nothing about another's.
"""
import functools
import re
from pathlib import Path
from typing import Final

import msgspec

from gateway.prices import Price, Tier

_DATED: Final = re.compile(r"(?:-\d{4}-\d\d-\d\d|-\d{8}|@\w+|-latest|-\d{4})$")


class Source(msgspec.Struct, frozen=True):
    """Who states a price, and when that was looked up."""
    name: str
    url: str
    as_of: str


class Row(msgspec.Struct, frozen=True, array_like=True):
    """One model's price; ``source`` is a place in ``Table.sources``, tiers are (above, input, output, cached, cache write)."""
    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None
    reasoning: float | None = None
    source: int = 0
    tiers: tuple[tuple[int, float | None, float | None, float | None, float | None], ...] = ()


class Table(msgspec.Struct, frozen=True):
    """The file. Providers stay undecoded until one of theirs is asked for."""
    sources: tuple[Source, ...]
    same: dict[str, str]                     # provider -> the one whose prices it charges
    providers: dict[str, msgspec.Raw]


def find(provider: str, model: str) -> Price | None:
    """The stated price; None = unknown."""
    rows = _rows(provider)
    if not rows:
        return None
    name = model.lower()
    bare = _DATED.sub("", name)
    row = rows.get(name) or rows.get(bare) or rows.get(f"{bare}-latest")
    return None if row is None else _price(row)


def _price(row: Row) -> Price:
    source = _table().sources[row.source]
    return Price(input=row.input, output=row.output, cached=row.cached, cache_write=row.cache_write, reasoning=row.reasoning,
                 tiers=tuple(Tier(above=above, input=input, output=output, cached=cached, cache_write=write)
                             for above, input, output, cached, write in row.tiers),
                 source=source.name, as_of=source.as_of)


@functools.cache
def _table() -> Table:
    return msgspec.json.decode(Path(__file__).with_name("prices.json").read_bytes(), type=Table)


@functools.cache
def _rows(provider: str) -> dict[str, Row]:
    table = _table()
    raw = table.providers.get(table.same.get(provider, provider))
    return {} if raw is None else msgspec.json.decode(raw, type=dict[str, Row])
