"""How do [[combos]] become plans? Names that must lead somewhere, nesting that must end, settings layer over layer."""
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from gateway.config.problems import Problems, nearest
from gateway.config.schema import ComboSettings, ComboStep, ComboTable, Config
from gateway.providers.registry import Provider
from gateway.routing import virtual, wildcards
from gateway.routing.combos import DEFAULTS, EXECUTABLE, MAX_DEPTH, Plan, Settings, Shape, StepPlan
from gateway.routing.places import NOTHING_OWN
from gateway.routing.strategies.scoring import WEIGHTS

_NAME_CHARS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.-[] ")
_OF_PROVIDERS: Final = ("max_retries", "target_timeout_s")    # what a provider's own table may override
_OF_STEPS: Final = ("max_retries", "target_timeout_s", "concurrency")
_WITHOUT_TARGETS: Final = frozenset({"auto", "bandit"})


class House(msgspec.Struct, frozen=True):
    """What combos are compiled against. ``tuning``: a provider's id -> the settings of its table."""
    providers: tuple[Provider, ...]
    tuning: Mapping[str, ComboSettings] = {}
    defaults: ComboSettings = ComboSettings()


def house_of(config: Config, providers: tuple[Provider, ...]) -> House:
    return House(providers, {table.id or table.preset: table.combos for table in config.providers
                             if table.combos != ComboSettings()}, config.routing.combo_defaults)


def plans(config: Config, providers: tuple[Provider, ...], problems: Problems) -> tuple[Plan, ...]:
    """Every combo of a configuration by names; after problems they are only good for further checks."""
    house = house_of(config, providers)
    layered(DEFAULTS, house.defaults, "routing.combo_defaults", problems)
    found = compiled(house, [(f"combos[{index}]", table) for index, table in enumerate(config.combos)], problems)
    for index, provider in enumerate(config.providers):
        for name in ComboSettings.__struct_fields__:
            if name not in _OF_PROVIDERS and getattr(provider.combos, name) not in (None, (), {}):
                problems.add(f"providers[{index}].combos.{name}",
                             f"is no setting of a provider; here are {' and '.join(_OF_PROVIDERS)}")
    known = Names(house, [plan.name for plan in found])
    _aliases(config, known, problems)
    _shadows(config, known, problems)
    _fusion(config, known, problems)
    return found


def compiled(house: House, tables: Sequence[tuple[str, ComboTable]], problems: Problems,
             beside: Sequence[Plan] = ()) -> tuple[Plan, ...]:
    """Combos by names: those of a file, or those of the store with others ``beside`` them. (path, table) each."""
    known = Names(house, [*(plan.name for plan in beside), *(table.name for _, table in tables)])
    base = layered(DEFAULTS, house.defaults, "", Problems())
    seen: dict[str, str] = {}
    found: list[Plan] = []
    for path, table in tables:
        _name(table.name, path, seen, known, problems)
        found.append(_plan(house, table, path, base, known, problems))
    _nesting([(path, plan) for (path, _), plan in zip(tables, found, strict=True)], beside, problems)
    return tuple(found)


def _plan(house: House, table: ComboTable, path: str, base: Settings, known: "Names", problems: Problems) -> Plan:
    steps = tuple(_step(step, f"{path}.targets[{place}]", known, problems) for place, step in enumerate(table.targets))
    if not steps and table.strategy not in _WITHOUT_TARGETS and not problems.has(f"{path}.targets"):
        problems.add(f"{path}.targets", 'is missing; name at least one, such as targets = ["provider/model"]')
    own = layered(base, table, path, problems)
    if own.nested == "execute" and table.strategy not in EXECUTABLE:
        problems.warn(f"{path}.nested", f"has no effect: {table.strategy} compares targets, so inner combos are flattened")
    for place, name in enumerate(table.allowed_providers):
        if name not in known.providers:
            problems.add(f"{path}.allowed_providers[{place}]", f"{name!r} is no provider" + nearest(name, known.providers))
    if table.judge:
        own = msgspec.structs.replace(own, judge=table.judge)
        if not known.has(table.judge.removeprefix("combo/")) and table.judge != "auto":
            problems.add(f"{path}.judge", _lost(table.judge, known))
        elif table.strategy != "fusion":
            problems.warn(f"{path}.judge", f"has no effect: the strategy {table.strategy} has no judge")
    if table.tiers:
        steps = tiered(steps, table, path, problems)
        own = msgspec.structs.replace(own, tiered=True)
    elif table.default_tier:
        problems.add(f"{path}.default_tier", "names a tier, and there are no tiers")
    overrides = {name: layered(_tuned(base, tuning), table, path, Problems()) for name, tuning in house.tuning.items()}
    return Plan(name=table.name, strategy=table.strategy, steps=steps, shape=_shape(table, path, problems),
                settings=own, providers=frozenset(table.allowed_providers),
                overrides={name: msgspec.structs.replace(one, tiered=own.tiered) for name, one in overrides.items()})


def _tuned(base: Settings, tuning: ComboSettings) -> Settings:
    """What differs at one provider: below the combo's own settings, above everybody's."""
    given: dict[str, Any] = {name: getattr(tuning, name) for name in _OF_PROVIDERS if getattr(tuning, name) is not None}
    return msgspec.structs.replace(base, **given)


def _shape(table: ComboTable, path: str, problems: Problems) -> Shape | None:
    """What it makes of requests; None where that is nothing."""
    keeps: re.Pattern[str] | None = None
    if table.tool_filter:
        try:
            keeps = re.compile(table.tool_filter)
        except (re.error, RecursionError, OverflowError) as e:
            problems.add(f"{path}.tool_filter", f"is no regular expression: {e}")
    message = table.system_message if table.system_message.strip() else ""
    off = frozenset(table.guards_off)
    return Shape(message, keeps, off) if message or keeps is not None or off else None


def tiered(steps: tuple[StepPlan, ...], table: ComboTable, path: str, problems: Problems) -> tuple[StepPlan, ...]:
    """The steps in the order of their tiers: from the default along the fallbacks, then other tiers, then the rest."""
    tiers = {tier.name: tier for tier in reversed(table.tiers)}
    found: dict[str, StepPlan] = {}
    for place, tier in enumerate(table.tiers):
        where = f"{path}.tiers[{place}]"
        if tiers[tier.name] is not tier:
            problems.add(f"{where}.name", f"{tier.name!r} is the name of another tier already")
        if tier.fallback and tier.fallback not in tiers:
            problems.add(f"{where}.fallback", f"{tier.fallback!r} is no tier" + nearest(tier.fallback, tiers))
        step = next((step for step in steps if tier.step in (step.label, step.target, step.combo)), None)
        if step is None:
            problems.add(f"{where}.step", f"{tier.step!r} is no place of this combo; write its label, or its target as above")
        else:
            found[tier.name] = step
    first = table.default_tier or table.tiers[0].name
    if first not in tiers:
        problems.add(f"{path}.default_tier", f"{first!r} is no tier" + nearest(first, tiers))
    way: dict[str, None] = {}
    while first in tiers and first not in way:
        way[first] = None
        first = tiers[first].fallback
    order = [found[name] for name in [*way, *(tier.name for tier in table.tiers)] if name in found]
    return tuple({id(step): step for step in [*order, *steps]}.values())


def layered(below: Settings, table: ComboSettings, path: str, problems: Problems) -> Settings:
    """One layer of the cascade: what is written wins, what is left out stays."""
    written = {name: value for name in ComboSettings.__struct_fields__
               if (value := getattr(table, name)) is not None and value != () and value != {}}
    if "weights" in written:
        written["weights"] = _weights(table.weights, f"{path}.weights", problems)
    if "sticky_limit" in written:
        written["sticky_limit"] = max(written["sticky_limit"], 1)
    return msgspec.structs.replace(below, **written)


def _weights(given: Mapping[str, Any], path: str, problems: Problems) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, value in given.items():
        if name not in WEIGHTS:
            problems.add(f"{path}.{name}", f"is no factor; known: {', '.join(WEIGHTS)}" + nearest(name, WEIGHTS))
        elif isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e9:
            problems.add(f"{path}.{name}", "must be a number of at least 0")
        else:
            found[name] = float(value)
    if found and not sum(found.values()):
        problems.add(path, "sum to 0; give at least one factor weight")
    return found


class Names:
    """What a step may name."""

    def __init__(self, house: House, combos: Sequence[str]) -> None:
        providers = house.providers
        self.combos = set(combos)
        self.ids = {id for provider in providers for id, model in provider.models.items() if model.kind == "chat"}
        self.aliases = {alias for provider in providers for model in provider.models.values() for alias in model.aliases}
        self.labels = {f"{provider.id}/{id}" for provider in providers
                       for id, model in provider.models.items() if model.kind == "chat"}
        self.labels |= {f"{provider.id}/{alias}" for provider in providers for model in provider.models.values()
                        for alias in model.aliases}
        self.providers = {provider.id: provider for provider in providers}
        self.open = {provider.id for provider in providers if provider.discover}       # what they have, they say themselves

    def has(self, name: str) -> bool:
        return name in self.labels or name in self.combos or name in self.ids or name in self.aliases \
            or virtual.spec(name) is not None or name.partition("/")[0] in self.open


def _name(name: str, path: str, seen: dict[str, str], known: Names, problems: Problems) -> None:
    where = f"{path}.name"
    if problems.has(where):
        return
    if not set(name) <= _NAME_CHARS or name != name.strip():
        problems.add(where, "may hold letters, digits, spaces and _ / . - [ ] only, and no space at its ends")
    if name in seen:
        problems.add(where, f"{name!r} is the name of {seen[name]} already")
    seen.setdefault(name, path)
    if name in known.labels:
        problems.warn(where, f"{name!r} is also PROVIDER/MODEL of a provider, which wins; combo/{name} always means this one")
    elif name in known.ids:
        problems.warn(where, f"{name!r} hides the model of that name; PROVIDER/{name} always means the model")
    elif name in known.aliases:
        problems.warn(where, f"{name!r} hides the alias of that name")
    elif virtual.spec(name) is not None or name.partition(":")[0] == "fusion":
        problems.warn(where, f"{name!r} hides the virtual model of that name")


def _step(step: ComboStep, path: str, known: Names, problems: Problems) -> StepPlan:
    target, combo = step.target.strip(), step.combo.strip()
    if bool(target) == bool(combo):
        problems.add(path, "must name one target or one combo" if not target else "names a target and a combo; write one of them")
        return StepPlan()
    if not combo and target not in known.labels and (target.removeprefix("combo/") in known.combos or virtual.spec(target)):
        target, combo = "", target.removeprefix("combo/")
    if combo and combo not in known.combos and virtual.spec(combo) is None:
        problems.add(f"{path}.combo" if step.combo else path, f"{combo!r} is no combo" + nearest(combo, known.combos))
    if target and not _leads(target, known):
        problems.add(f"{path}.target" if step.target and step != ComboStep(target=step.target) else path, _lost(target, known))
    if step.accounts and target:
        _accounts(step, path, known, problems)
    return StepPlan(target=target, combo=combo, weight=step.weight, label=step.label, accounts=step.accounts,
                    tags=frozenset(step.tags), own=_own(step))


def _own(step: ComboStep) -> Mapping[str, Any]:
    """Settings of the place itself: the last layer."""
    written = {name: value for name in _OF_STEPS if (value := getattr(step, name)) is not None}
    return written or NOTHING_OWN


def _leads(target: str, known: Names) -> bool:
    if wildcards.is_pattern(target):
        pattern = wildcards.compiled(target)
        provider = wildcards.compiled(target.partition("/")[0])
        return any(pattern.fullmatch(label) for label in known.labels) or any(provider.fullmatch(id) for id in known.open)
    return target in known.labels or target in known.ids or target in known.aliases or target.partition("/")[0] in known.open


def _lost(target: str, known: Names) -> str:
    provider, slash, model = target.partition("/")
    if wildcards.is_pattern(target):
        return f"{target!r} fits no model"
    if slash and provider in known.providers:
        return f"provider {provider!r} does not list {model!r}" + nearest(model, known.providers[provider].models)
    return f"{target!r} is no provider/model, model or combo" + nearest(target, {*known.labels, *known.ids, *known.combos})


def _accounts(step: ComboStep, path: str, known: Names, problems: Problems) -> None:
    provider = known.providers.get(step.target.partition("/")[0])
    if provider is None:
        return
    have = {account.label for account in provider.accounts} | {str(account.ordinal) for account in provider.accounts}
    for place, name in enumerate(step.accounts):
        if name not in have:
            problems.add(f"{path}.accounts[{place}]", f"{name!r} is no key of {provider.id}; it has {len(provider.accounts)}, "
                         'written "1", "2" …')


def _nesting(found: Sequence[tuple[str, Plan]], beside: Sequence[Plan], problems: Problems) -> None:
    """Cycles and depth, each told at the combo where it begins."""
    by_name = {plan.name: plan for plan in [*beside, *(plan for _, plan in found)]}
    for path, plan in found:
        if problems.has(f"{path}.targets"):
            continue
        deepest: tuple[str, ...] = ()
        for way in _ways(plan, by_name, (plan.name,)):
            if way[-1] == plan.name and len(way) > 1:
                problems.add(f"{path}.targets", f"leads back to itself: {' > '.join(way)}")
                break
            deepest = max(deepest, way, key=len)
        limit = min(plan.settings.max_depth, MAX_DEPTH)
        if len(deepest) > limit:
            problems.add(f"{path}.targets", f"is nested {len(deepest)} deep ({' > '.join(deepest)}); max_depth is {limit}")


def _ways(plan: Plan, by_name: Mapping[str, Plan], way: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Every way down, each combo at most once a way (a repeated one ends it)."""
    if len(way) > MAX_DEPTH + 1:
        return
    for name in dict.fromkeys(step.combo for step in plan.steps if step.combo and step.combo in by_name):
        yield (*way, name)
        if name not in way:
            yield from _ways(by_name[name], by_name, (*way, name))


def _aliases(config: Config, known: Names, problems: Problems) -> None:
    aliases = config.routing.aliases
    for table, values in (("aliases", aliases), ("families", config.routing.families)):
        for name, to in values.items():
            if to != "auto" and not known.has(to.removeprefix("combo/")) and to not in aliases:
                problems.add(f"routing.{table}.{name}", _lost(to, known))
    for name in aliases:
        if name in known.labels or name in known.combos or name in known.ids:
            problems.warn(f"routing.aliases.{name}", "has no effect: something of that name is served")
    for name, to in config.routing.background_models.items():
        if to != "auto" and not known.has(to.removeprefix("combo/")) and to not in aliases:
            problems.add(f"routing.background_models.{name}", _lost(to, known))
    if config.routing.emergency and not known.has(config.routing.emergency):
        problems.add("routing.emergency", _lost(config.routing.emergency, known))


def _fusion(config: Config, known: Names, problems: Problems) -> None:
    table = config.fusion
    if table.judge and table.judge != "auto" and not known.has(table.judge.removeprefix("combo/")):
        problems.add("fusion.judge", _lost(table.judge, known))
    if table.k > table.max_k:
        problems.add("fusion.k", f"is above max_k ({table.max_k})")


def _shadows(config: Config, known: Names, problems: Problems) -> None:
    for index, shadow in enumerate(config.routing.shadow):
        path = f"routing.shadow[{index}]"
        if not known.has(shadow.target.removeprefix("combo/")):
            problems.add(f"{path}.target", _lost(shadow.target, known))
        for place, pattern in enumerate(shadow.models):
            if not pattern.strip():
                problems.add(f"{path}.models[{place}]", 'is empty; write a pattern such as "gpt-*"')
        if not shadow.share or not shadow.models:
            problems.warn(path, "copies nothing: " + ("share is 0" if not shadow.share else "models is empty"))
