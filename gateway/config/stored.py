"""How do combos of the store become plans beside those of the file? By the same code; the file wins where a name is taken.

Writing is strict: every problem by its path within the combo. Reading is not: a combo may be older than its neighbours or than this
version, and a place that leads nowhere any more yields nothing.
"""
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from gateway.config.combos import House, compiled, house_of
from gateway.config.decode import Decoder
from gateway.config.problems import ConfigError, Problem, Problems
from gateway.config.schema import ComboTable
from gateway.config.snapshot import Snapshot
from gateway.core.ports import ComboRow
from gateway.routing.combos import Plan

MAX_BODY: Final = 262_144                        # characters
_PLACE: Final = "combos[0]"


class _Plain(Decoder):
    """Nothing is expanded: what comes over a wire must not read the environment, or files."""

    def text(self, raw: str, path: str) -> str | None:
        return raw


def merged(snapshot: Snapshot, rows: Sequence[ComboRow]) -> Snapshot:
    """The configuration with the store's combos; what is wrong with them is a warning."""
    if not rows:
        return snapshot
    written = {plan.name for plan in snapshot.combos}
    tables, warnings = list[tuple[str, ComboTable]](), list[Problem]()
    for row in rows:
        where = f"store.combos.{row.name}"
        problems = Problems()
        table = _table(row, where, problems)
        if row.name in written:
            warnings.append((where, "has no effect: the configuration has a combo of that name, which wins"))
        elif table is None:
            warnings += [(path, f"left out: {message}") for path, message in problems.found]
        else:
            tables.append((where, table))
    problems = Problems()
    plans = compiled(_house(snapshot), tables, problems, snapshot.combos)
    return msgspec.structs.replace(snapshot, combos=(*snapshot.combos, *plans),
                                   warnings=(*snapshot.warnings, *warnings, *problems.found, *problems.warnings))


def judged(snapshot: Snapshot, raw: Mapping[str, Any], rows: Sequence[ComboRow]) -> tuple[ComboTable, list[Problem]]:
    """A combo that somebody wants to put beside ``rows``, and the warnings about it. ``snapshot``: without combos of the store.
    Raises ConfigError."""
    problems = Problems()
    table = _Plain({}, problems).table(dict(raw), ComboTable, _PLACE)
    if any(plan.name == table.name for plan in snapshot.combos):
        problems.add(f"{_PLACE}.name", f"{table.name!r} stands in the configuration, and is changed there")
    try:
        if len(msgspec.json.encode(raw)) > MAX_BODY:
            problems.add(_PLACE, f"is larger than {MAX_BODY} bytes")
    except (TypeError, ValueError, RecursionError):
        problems.add(_PLACE, "cannot be written as JSON")
    others = [(f"others.{row.name}", other) for row in rows
              if row.name != table.name and (other := _table(row, "", Problems())) is not None]
    before = Problems()
    compiled(_house(snapshot), others, before, snapshot.combos)
    plans = compiled(_house(snapshot), [(_PLACE, table), *others], problems, snapshot.combos)
    _harm(plans, {path for path, _ in before.found}, problems)
    if problems.found:
        raise ConfigError([(_inside(path), message) for path, message in problems.found])
    return table, [(_inside(path), message) for path, message in problems.warnings if path.startswith(_PLACE)]


def _harm(plans: Sequence[Plan], before: set[str], problems: Problems) -> None:
    """What the new combo does to others is its own problem; what was wrong with them before is not."""
    found = [(path, message) for path, message in problems.found if path.startswith("others.")]
    problems.found = [(path, message) for path, message in problems.found if not path.startswith("others.")]
    for path, message in found:
        if path not in before and path.endswith(".targets"):
            problems.add(f"{_PLACE}.targets", f"would break {path.removeprefix('others.').removesuffix('.targets')}: it {message}")


def users(rows: Sequence[ComboRow], name: str) -> list[str]:
    """Combos of the store that this one is part of."""
    found = []
    for row in rows:
        table = _table(row, "", Problems())
        if row.name != name and table is not None and any(
                name in (step.combo, step.target, step.target.removeprefix("combo/")) for step in table.targets):
            found.append(row.name)
    return found


def body_of(raw: Mapping[str, Any]) -> str:
    """As it is kept."""
    return msgspec.json.encode({key: value for key, value in raw.items() if key != "name"}).decode()


def written(row: ComboRow) -> dict[str, Any]:
    """As it was written; only its name where that cannot be read."""
    try:
        fields = msgspec.json.decode(row.body, type=dict[str, Any])
    except msgspec.MsgspecError:
        fields = {}
    return {"name": row.name, **fields}


def _table(row: ComboRow, where: str, problems: Problems) -> ComboTable | None:
    """None, with problems, where it has not the shape of a combo."""
    try:
        fields = msgspec.json.decode(row.body, type=dict[str, Any])
    except msgspec.MsgspecError:
        problems.add(where, "is no JSON object")
        return None
    table = _Plain({}, problems).table({**fields, "name": row.name}, ComboTable, where)
    return None if problems.found else table


def _house(snapshot: Snapshot) -> House:
    return house_of(snapshot.config, snapshot.providers)


def _inside(path: str) -> str:
    return path.removeprefix(_PLACE).removeprefix(".")
