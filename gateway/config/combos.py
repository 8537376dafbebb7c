"""How do [[combos]] become plans? Names that must lead somewhere, nesting that must end, settings layer over layer."""
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from gateway.config.problems import Problems, nearest
from gateway.config.schema import ComboSettings, ComboStep, ComboTable, Config
from gateway.providers.registry import Provider
from gateway.routing import virtual, wildcards
from gateway.routing.combos import DEFAULTS, EXECUTABLE, MAX_DEPTH, Plan, Settings, StepPlan
from gateway.routing.strategies.scoring import WEIGHTS

_NAME_CHARS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.-[] ")
_OF_PROVIDERS: Final = ("max_retries", "target_timeout_s")    # what a provider's own table may override
_WITHOUT_TARGETS: Final = frozenset({"auto", "bandit"})


def plans(config: Config, providers: tuple[Provider, ...], problems: Problems) -> tuple[Plan, ...]:
    """Every combo by names; after problems they are only good for further checks."""
    known = _Names(config, providers)
    found: list[Plan] = []
    seen: dict[str, str] = {}
    base = layered(DEFAULTS, config.routing.combo_defaults, "routing.combo_defaults", problems)
    for index, table in enumerate(config.combos):
        path = f"combos[{index}]"
        _name(table.name, path, seen, known, problems)
        steps = tuple(_step(step, f"{path}.targets[{place}]", known, problems) for place, step in enumerate(table.targets))
        if not steps and table.strategy not in _WITHOUT_TARGETS and not problems.has(f"{path}.targets"):
            problems.add(f"{path}.targets", 'is missing; name at least one, such as targets = ["provider/model"]')
        own = layered(base, table, path, problems)
        if own.nested == "execute" and table.strategy not in EXECUTABLE:
            problems.warn(f"{path}.nested", f"has no effect: {table.strategy} compares targets, so inner combos are flattened")
        found.append(Plan(name=table.name, strategy=table.strategy, steps=steps, settings=own,
                          overrides=_overrides(config, base, table, path, problems)))
    for index, provider in enumerate(config.providers):
        for name in ComboSettings.__struct_fields__:
            if name not in _OF_PROVIDERS and getattr(provider.combos, name) not in (None, (), {}):
                problems.add(f"providers[{index}].combos.{name}",
                             f"is no setting of a provider; here are {' and '.join(_OF_PROVIDERS)}")
    _nesting(found, problems)
    _aliases(config, known, problems)
    return tuple(found)


def layered(below: Settings, table: ComboSettings, path: str, problems: Problems) -> Settings:
    """One layer of the cascade: what is written wins, what is left out stays."""
    written = {name: value for name in ComboSettings.__struct_fields__
               if (value := getattr(table, name)) is not None and value != () and value != {}}
    if "weights" in written:
        written["weights"] = _weights(table.weights, f"{path}.weights", problems)
    if "sticky_limit" in written:
        written["sticky_limit"] = max(written["sticky_limit"], 1)
    return msgspec.structs.replace(below, **written)


def _overrides(config: Config, base: Settings, table: ComboTable, path: str, problems: Problems) -> Mapping[str, Settings]:
    """What differs at single providers: below the combo's own settings, above everybody's."""
    found: dict[str, Settings] = {}
    for provider in config.providers:
        given: dict[str, Any] = {name: getattr(provider.combos, name) for name in _OF_PROVIDERS
                                 if getattr(provider.combos, name) is not None}
        if given:
            under = msgspec.structs.replace(base, **given)
            found[provider.id or provider.preset] = layered(under, table, path, problems)
    return found


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


class _Names:
    """What a step may name."""

    def __init__(self, config: Config, providers: tuple[Provider, ...]) -> None:
        self.combos = {table.name for table in config.combos}
        self.ids = {id for provider in providers for id, model in provider.models.items() if model.kind == "chat"}
        self.aliases = {alias for provider in providers for model in provider.models.values() for alias in model.aliases}
        self.labels = {f"{provider.id}/{id}" for provider in providers
                       for id, model in provider.models.items() if model.kind == "chat"}
        self.labels |= {f"{provider.id}/{alias}" for provider in providers for model in provider.models.values()
                        for alias in model.aliases}
        self.providers = {provider.id: provider for provider in providers}

    def has(self, name: str) -> bool:
        return name in self.labels or name in self.combos or name in self.ids or name in self.aliases \
            or virtual.spec(name) is not None


def _name(name: str, path: str, seen: dict[str, str], known: _Names, problems: Problems) -> None:
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


def _step(step: ComboStep, path: str, known: _Names, problems: Problems) -> StepPlan:
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
                    tags=frozenset(step.tags))


def _leads(target: str, known: _Names) -> bool:
    if wildcards.is_pattern(target):
        return any(wildcards.compiled(target).fullmatch(label) for label in known.labels)
    return target in known.labels or target in known.ids or target in known.aliases


def _lost(target: str, known: _Names) -> str:
    provider, slash, model = target.partition("/")
    if wildcards.is_pattern(target):
        return f"{target!r} fits no model"
    if slash and provider in known.providers:
        return f"provider {provider!r} does not list {model!r}" + nearest(model, known.providers[provider].models)
    return f"{target!r} is no provider/model, model or combo" + nearest(target, {*known.labels, *known.ids, *known.combos})


def _accounts(step: ComboStep, path: str, known: _Names, problems: Problems) -> None:
    provider = known.providers.get(step.target.partition("/")[0])
    if provider is None:
        return
    have = {account.label for account in provider.accounts} | {str(account.ordinal) for account in provider.accounts}
    for place, name in enumerate(step.accounts):
        if name not in have:
            problems.add(f"{path}.accounts[{place}]", f"{name!r} is no key of {provider.id}; it has {len(provider.accounts)}, "
                         'written "1", "2" …')


def _nesting(found: list[Plan], problems: Problems) -> None:
    """Cycles and depth, each told at the combo where it begins."""
    by_name = {plan.name: plan for plan in found}
    for index, plan in enumerate(found):
        if problems.has(f"combos[{index}].targets"):
            continue
        deepest: tuple[str, ...] = ()
        for way in _ways(plan, by_name, (plan.name,)):
            if way[-1] == plan.name and len(way) > 1:
                problems.add(f"combos[{index}].targets", f"leads back to itself: {' > '.join(way)}")
                break
            deepest = max(deepest, way, key=len)
        limit = min(plan.settings.max_depth, MAX_DEPTH)
        if len(deepest) > limit:
            problems.add(f"combos[{index}].targets", f"is nested {len(deepest)} deep ({' > '.join(deepest)}); "
                         f"max_depth is {limit}")


def _ways(plan: Plan, by_name: Mapping[str, Plan], way: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Every way down, each combo at most once a way (a repeated one ends it)."""
    if len(way) > MAX_DEPTH + 1:
        return
    for name in dict.fromkeys(step.combo for step in plan.steps if step.combo in by_name):
        yield (*way, name)
        if name not in way:
            yield from _ways(by_name[name], by_name, (*way, name))


def _aliases(config: Config, known: _Names, problems: Problems) -> None:
    aliases = config.routing.aliases
    for table, values in (("aliases", aliases), ("families", config.routing.families)):
        for name, to in values.items():
            if to != "auto" and not known.has(to.removeprefix("combo/")) and to not in aliases:
                problems.add(f"routing.{table}.{name}", _lost(to, known))
    for name in aliases:
        if name in known.labels or name in known.combos or name in known.ids:
            problems.warn(f"routing.aliases.{name}", "has no effect: something of that name is served")
    if config.routing.emergency and not known.has(config.routing.emergency):
        problems.add("routing.emergency", _lost(config.routing.emergency, known))
