"""How does a tool make, change and judge combos? By the combo book, like the API: what is left out of a change stays as it was."""
from collections.abc import Iterable
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gateway.admin import combos, upstreams
from gateway.admin.combos import ComboView, Tested
from gateway.admin.errand import Ask, Done, Errand, Facts
from gateway.config.tables import Strategy
from gateway.core.errors import GatewayError, bad_request
from gateway.routing.combos import Combo

MOST_STEPS: Final = 500

Name = Annotated[str, Meta(min_length=1, max_length=100, description="The combo's name.")]
Step = Annotated[str, Meta(min_length=1, max_length=400)] | dict[str, Any]
Steps = Annotated[list[Step], Meta(max_length=MOST_STEPS, description='In their order: "provider/model", a model, a pattern such as '
                                   '"groq/*", a combo; or {"target": "a/m", "weight": 2}.')]
About = Annotated[str, Meta(max_length=2_000, description="For people.")]
More = Annotated[dict[str, Any], Meta(description="Other keys of a [[combos]] table, such as sticky_limit, weights, tiers, "
                                      "system_message; null takes one away.")]


class Which(Ask, frozen=True):
    """All of them."""
    metrics: Annotated[bool, Meta(description="Also how each target did lately.")] = False


class One(Ask, frozen=True):
    """A combo."""
    combo: Name


class NewCombo(Ask, frozen=True):
    """A combo to be made."""
    combo: Name
    targets: Steps
    strategy: Strategy = "priority"
    description: About = ""
    settings: More = {}


class Edit(Ask, frozen=True):
    """What is to be otherwise."""
    combo: Name
    targets: Steps | UnsetType = UNSET
    strategy: Strategy | UnsetType = UNSET
    description: About | UnsetType = UNSET
    settings: More = {}


class NewStrategy(Ask, frozen=True):
    """Another order."""
    combo: Name
    strategy: Strategy


class TargetMetrics(Facts, frozen=True):
    """One target of a combo, by all of its keys together."""
    target: str
    usable: bool
    resting: int                                 # keys that rest for it
    keys: int
    measured: upstreams.Measured
    input_usd: float | None
    output_usd: float | None


class ComboMetrics(Facts, frozen=True):
    """How a combo's targets do now, in their order."""
    combo: str
    strategy: str
    usable: int
    targets: list[TargetMetrics]


class Listed(Facts, frozen=True):
    """The file's in its order, then the store's in theirs."""
    combos: list[ComboView]
    strategies: list[str]
    metrics: list[ComboMetrics]


async def listed(errand: Errand, asked: Which) -> Listed:
    found = await combos.listed(errand)
    return Listed(combos=found.combos, strategies=found.strategies,
                  metrics=[measured(combo, errand) for combo in errand.ground.catalog.combos.values()] if asked.metrics else [])


async def one(errand: Errand, asked: One) -> ComboView:
    return msgspec.convert(errand.ground.combobook.find(asked.combo), ComboView)


async def metrics(errand: Errand, asked: One) -> ComboMetrics:
    combo = errand.ground.catalog.combos.get(asked.combo)
    if combo is None:
        errand.ground.combobook.find(asked.combo)
        raise GatewayError("no_provider", f"The combo {asked.combo!r} has no target left.", param="combo")
    return measured(combo, errand)


async def create(errand: Errand, asked: NewCombo) -> ComboView:
    if any(entry["name"] == asked.combo for entry in errand.ground.combobook.listed()):
        raise bad_request(f"combo: there is one named {asked.combo!r} already; edit_combo changes it", "combo")
    errand.body = given({"strategy": asked.strategy, "description": asked.description, "targets": asked.targets, **asked.settings})
    return await _put(errand, asked.combo)


async def edit(errand: Errand, asked: Edit) -> ComboView:
    table = errand.ground.combobook.find(asked.combo)["table"]
    if table is None:
        raise bad_request(f"The combo {asked.combo!r} stands in the configuration, and is changed there.", "combo")
    changed = {name: value for name in ("strategy", "description", "targets") if (value := getattr(asked, name)) is not UNSET}
    errand.body = given({**table, **changed, **asked.settings})
    return await _put(errand, asked.combo)


async def strategy(errand: Errand, asked: NewStrategy) -> ComboView:
    return await edit(errand, Edit(combo=asked.combo, strategy=asked.strategy))


async def delete(errand: Errand, asked: One) -> Done:
    errand.params = {"name": asked.combo}
    return await combos.drop(errand)


async def test(errand: Errand, asked: One) -> Tested:
    """A key asks only those that it may ask."""
    if errand.principal is not None and not errand.principal.allows(asked.combo):
        raise GatewayError("forbidden", f"This client key may not use the model {asked.combo!r}.", param="combo",
                           code="model_not_allowed")
    errand.params = {"name": asked.combo}
    return await combos.test(errand)


async def _put(errand: Errand, name: str) -> ComboView:
    errand.params = {"name": name}
    return await combos.put(errand)


def given(table: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if value not in (None, "")}


def measured(combo: Combo, errand: Errand) -> ComboMetrics:
    ground = errand.ground
    health, now = ground.health, ground.clock.now()
    rows: dict[str, TargetMetrics] = {}
    for leg in combo.legs():
        if leg.target.label in rows or len(rows) >= MOST_STEPS or not leg.candidates:
            continue
        resting = sum(health.cooldown(one, now) is not None for one in leg.candidates)
        price = leg.target.model.price
        records = (record for one in leg.candidates if (record := health.stats.get(one.key)) is not None)
        rows[leg.target.label] = TargetMetrics(
            target=leg.target.label, usable=resting < len(leg.candidates), resting=resting, keys=len(leg.candidates),
            measured=upstreams.measured(records), input_usd=price.input if price else None,
            output_usd=price.output if price else None)
    return ComboMetrics(combo=combo.name, strategy=combo.strategy, usable=_usable(rows.values()), targets=list(rows.values()))


def _usable(rows: Iterable[TargetMetrics]) -> int:
    return sum(row.usable for row in rows)
