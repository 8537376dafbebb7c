"""What do the [[rules]] do to requests on their way out? Checked at load, compiled to changes of a body by path."""
import math
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from gateway.config.problems import Problems
from gateway.config.schema import Config, RuleTable
from gateway.providers.registry import Model, Provider
from gateway.routing import wildcards
from gateway.wire.change import Change, Path

MAX_RULES: Final = 200
MAX_FIELDS: Final = 100                          # of one rule
MAX_DEPTH: Final = 16
# First name of a path -> why no rule may touch it. What these say is decided elsewhere, and the answer is read by it.
FIXED: Final[dict[str, str]] = {
    **dict.fromkeys(("model", "modelId"), "routing chooses the model"),
    **dict.fromkeys(("stream", "stream_options", "streamOptions"), "the answer is read by it"),
    **dict.fromkeys(("messages", "input", "contents", "prompt"), "the dialogue is the client's"),
    **dict.fromkeys(("n", "candidateCount"), "the answer is read by it"),
    **dict.fromkeys(("authorization", "api_key", "apiKey", "api-key", "x-api-key", "key", "token", "access_token", "password",
                     "secret"), "credentials belong below [[providers]]"),
}
_FIXED_INSIDE: Final[dict[Path, str]] = {("generationConfig", "candidateCount"): FIXED["n"]}


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule, compiled."""
    models: tuple[str, ...]
    providers: tuple[str, ...]
    wires: frozenset[str]
    change: Change

    def fits(self, provider: Provider, model: Model) -> bool:
        names = (model.id, f"{provider.id}/{model.id}")
        return (not self.wires or provider.wire in self.wires) and (not self.providers or _any(self.providers, provider.id)) \
            and any(_any(self.models, name) for name in names)


def _any(patterns: tuple[str, ...], name: str) -> bool:
    return any(wildcards.compiled(pattern).fullmatch(name) for pattern in patterns)


def rules(config: Config, providers: tuple[Provider, ...], problems: Problems) -> tuple[Rule, ...]:
    """All of them, in their order; after problems good for nothing."""
    if len(config.rules) > MAX_RULES:
        problems.add("rules", f"are more than {MAX_RULES}")
    found = [_rule(table, f"rules[{index}]", problems) for index, table in enumerate(config.rules)]
    for index, rule in enumerate(found):
        if not any(provider.discover or any(rule.fits(provider, model) for model in provider.models.values())
                   for provider in providers) and not problems.has(f"rules[{index}]"):
            problems.warn(f"rules[{index}]", "fits no model that is configured")
    return tuple(found)


def _rule(table: RuleTable, path: str, problems: Problems) -> Rule:
    for name in ("models", "providers"):
        for place, pattern in enumerate(getattr(table, name)):
            if not pattern.strip():
                problems.add(f"{path}.{name}[{place}]", 'is empty; write a pattern such as "gpt-*"')
    remove = tuple(_path(text, f"{path}.remove[{place}]", problems) for place, text in enumerate(table.remove))
    change = Change(remove=remove, default=_fields(table.default, f"{path}.default", problems),
                    override=_fields(table.override, f"{path}.override", problems))
    if not (table.default or table.override or table.remove or problems.has(path)):
        problems.add(path, "does nothing; give it default, override or remove")
    return Rule(models=table.models or ("*",), providers=table.providers, wires=frozenset(table.wires), change=change)


def _fields(table: dict[str, Any], path: str, problems: Problems) -> tuple[tuple[Path, Any], ...]:
    """(path, value) of every leaf: a table inside of a table is part of the path, so that the rest of an object stays."""
    leaves = list(_leaves(table, (), path, problems))
    if len(leaves) > MAX_FIELDS:
        problems.add(path, f"has more than {MAX_FIELDS} fields")
    return tuple(leaves)


def _leaves(table: dict[str, Any], within: Path, path: str, problems: Problems) -> Iterator[tuple[Path, Any]]:
    for name, value in table.items():
        where = f"{path}.{name}"
        steps = (*within, *_path(name, where, problems, within))
        if problems.has(where):
            continue
        if isinstance(value, dict) and value:
            yield from _leaves(value, steps, where, problems)
        elif not _plain(value):
            problems.add(where, "must be text, a number, true or false, an array or a table of those")
        else:
            yield steps, value


def _plain(value: Any, depth: int = 0) -> bool:
    """Can it be said in JSON?"""
    if depth > MAX_DEPTH:
        return False
    if isinstance(value, (list, tuple)):
        return all(_plain(one, depth + 1) for one in value)
    if isinstance(value, dict):
        return all(_plain(one, depth + 1) for one in value.values())
    return isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value))


def _path(text: str, where: str, problems: Problems, within: Path = ()) -> Path:
    steps = tuple(text.split("."))
    whole = (*within, *steps)
    if not all(step.strip() == step and step for step in steps):
        problems.add(where, 'is no path of a field; write names with dots between them, such as "reasoning.effort"')
    elif len(whole) > MAX_DEPTH:
        problems.add(where, f"is more than {MAX_DEPTH} names deep")
    elif why := FIXED.get(whole[0]) or _FIXED_INSIDE.get(whole[:2]):
        problems.add(where, f"no rule may touch {'.'.join(whole)!r}: {why}")
    return steps
