"""How do the names of a combo's list become places? Nesting, patterns and execution keys, once per configuration.

``flatten`` puts the places of an inner combo where its name stands, depth first; ``execute`` keeps the inner combo as one place
that is ordered by its own strategy when its turn comes. A cycle yields nothing, and below ``max_depth`` only the direct targets
of a combo count: the configuration refuses both, but a combo of the store may be older than its neighbours.
"""
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol

from gateway.routing import virtual, wildcards
from gateway.routing.combos import EXECUTABLE, MAX_DEPTH, Combo, Plan, StepPlan, unit
from gateway.routing.places import Leg, Target

_KEY_CHARS: Final = 200


class Names(Protocol):
    """The chat models by name (catalog.Index)."""
    auto: tuple[Target, ...]
    aliases: dict[str, tuple[Target, ...]]
    ids: dict[str, tuple[Target, ...]]
    labels: dict[str, tuple[Target, ...]]


def bind(plans: Sequence[Plan], index: Names) -> dict[str, Combo]:
    """Every plan with its targets. A step that names nobody any more yields nothing."""
    binder = _Binder({plan.name: plan for plan in plans}, index)
    return {plan.name: binder.combo(plan) for plan in plans}


class _Binder:
    """One pass over all plans."""

    def __init__(self, plans: Mapping[str, Plan], index: Names) -> None:
        self.plans = plans
        self.index = index

    def combo(self, plan: Plan, within: tuple[str, ...] = ()) -> Combo:
        if not plan.steps:
            return self._made(plan, [target.leg for target in self.index.auto])
        items: list[Leg] = []
        for key, step in self._keyed(plan):
            items += self._step(plan, step, key, step.weight, (*within, plan.name))
        return self._made(plan, items)

    def _made(self, plan: Plan, items: Sequence[Leg]) -> Combo:
        made = Combo(plan.name, plan.strategy, tuple(items), plan.settings, plan.overrides, plan.shape)
        return made if not plan.providers else made.only(frozenset(t for t in made.targets if t.provider.id in plan.providers))

    def _keyed(self, plan: Plan) -> Iterator[tuple[str, StepPlan]]:
        for at, step in enumerate(plan.steps, 1):
            kind = "ref" if step.combo else "model"
            yield step.label or f"{slug(plan.name)}-{kind}-{at}-{slug(step.combo or step.target)}"[:_KEY_CHARS], step

    def _step(self, plan: Plan, step: StepPlan, key: str, weight: float, within: tuple[str, ...]) -> list[Leg]:
        """The places of one step of ``plan``; ``within`` names the combos around it, itself the last."""
        if step.combo:
            return self._inner(plan, step, key, weight, within)
        found = self.named(step.target)
        legs: list[Leg] = []
        for target in found:
            mine = key if len(found) == 1 else f"{key}:{target.label}"
            allowed = None
            if step.accounts:
                allowed = tuple(c for c in target.candidates
                                if c.account.label in step.accounts or str(c.account.ordinal) in step.accounts)
            legs.append(Leg(target, mine, candidates=allowed, step=key.partition(">")[0], weight=weight, tags=step.tags, own=step.own))
        return legs

    def _inner(self, plan: Plan, step: StepPlan, key: str, weight: float, within: tuple[str, ...]) -> list[Leg]:
        outer = self.plans[within[0]]
        meant = virtual.spec(step.combo)
        inner = self.plans.get(step.combo) or (Plan(name=step.combo, strategy="auto") if meant is not None else None)
        if inner is None or inner.name in within or len(within) >= min(outer.settings.max_depth, MAX_DEPTH):
            return []
        as_unit = outer.settings.nested == "execute" or step.combo not in self.plans
        if as_unit and outer.strategy in EXECUTABLE:
            made = self.combo(inner, within) if step.combo in self.plans or meant is None else virtual.combo(meant, self.index.auto)
            return [unit(made, key, weight)] if made.items else []
        top = key.partition(">")[0]
        if not inner.steps:
            legs_of = self.index.auto if meant is None else virtual.combo(meant, self.index.auto).targets
            return [Leg(target, f"{key}>{target.label}", step=top, weight=weight) for target in legs_of]
        legs: list[Leg] = []
        for below, deeper in self._keyed(inner):
            legs += self._step(inner, deeper, f"{key}>{below}", weight, (*within, inner.name))
        return legs

    def named(self, text: str) -> tuple[Target, ...]:
        """Who a step's text means: a label, a model id, a pattern over labels (``provider/*``)."""
        index = self.index
        found = index.labels.get(text) or index.ids.get(text) or index.aliases.get(text)
        if found is None and wildcards.is_pattern(text):
            pattern = wildcards.compiled(text)
            found = tuple(targets[0] for label, targets in index.labels.items()
                          if label == targets[0].label and pattern.fullmatch(label))
        return found or ()


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
