"""Which combos are there? Listed, made, changed, put in order, tried; those of the configuration file are changed there."""
from typing import Annotated, Any

import msgspec

from gateway.admin.errand import Ask, Done, Errand, Facts
from gateway.core.errors import bad_request
from gateway.pipeline.probe import Probed
from gateway.routing.strategies import STRATEGIES

Table = dict[str, Any]


class ComboView(Facts, frozen=True):
    """One combo. ``table``: as it was written, where it is changed here; null for those of the file."""
    name: str
    source: str                                  # config or store
    strategy: str
    steps: list[dict[str, str]]
    targets: list[str]
    table: Table | None
    changed: float
    warnings: list[str]


class Combos(Facts, frozen=True):
    """The file's in its order, then the store's in theirs."""
    combos: list[ComboView]
    strategies: list[str]


class Order(Ask, frozen=True):
    """Names of the store's combos; those that are left out follow."""
    names: Annotated[list[str], msgspec.Meta(max_length=1_000)]


class Ordered(Facts, frozen=True):
    """All names of the store in their order."""
    names: list[str]


class Tested(Facts, frozen=True):
    """What each target said."""
    probed: list[Probed]


async def listed(visit: Errand) -> Combos:
    return Combos(combos=msgspec.convert(visit.ground.combobook.listed(), list[ComboView]), strategies=sorted({"fusion", *STRATEGIES}))


async def put(visit: Errand) -> ComboView:
    """The body is a table as in [[combos]]; its name may be left out, another one is refused."""
    name, table = visit.params["name"], visit.body
    if table.setdefault("name", name) != name:
        raise bad_request("name: must be the one of the path; make a new combo and delete the old one to rename it", "name")
    made = await visit.ground.combobook.put(table)
    visit.note("combo.save", name, msgspec.json.encode(table).decode())
    return msgspec.convert(made, ComboView)


async def drop(visit: Errand) -> Done:
    await visit.ground.combobook.delete(visit.params["name"])
    visit.note("combo.delete", visit.params["name"])
    return Done()


async def order(visit: Errand) -> Ordered:
    names = await visit.ground.combobook.order(visit.body.names)
    visit.note("combo.order", ", ".join(names))
    return Ordered(names=names)


async def test(visit: Errand) -> Tested:
    """A tiny question to every target by one of its keys: costs a few tokens, changes no health."""
    probed = await visit.ground.combobook.test(visit.params["name"])
    visit.note("combo.test", visit.params["name"], f"{sum(one.ok for one in probed)} of {len(probed)} answered")
    return Tested(probed=probed)
