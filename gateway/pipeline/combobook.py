"""How are combos listed, made, changed, ordered, deleted and tried while running? The one place for it: admin API and MCP ask here.

Those of the configuration are shown and tried, and changed in their file. A change is on the disk and in force when it returns, in
this process; others see it within seconds (``refresh``).
"""
import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gateway.config import stored
from gateway.config.problems import ConfigError, Problem
from gateway.config.snapshot import Snapshot
from gateway.core.clock import Clock
from gateway.core.errors import GatewayError, bad_request
from gateway.core.ports import ComboRow, ComboStore
from gateway.pipeline.probe import Probed, probe
from gateway.routing.combos import Plan
from gateway.routing.places import Candidate

if TYPE_CHECKING:
    from gateway.pipeline.ground import Ground

log = logging.getLogger("gateway.combos")

MAX_COMBOS: Final = 1_000
MAX_PROBES: Final = 50                           # targets that one test asks
AT_ONCE: Final = 5


class ComboBook:
    """The combos of one store. ``ground`` and ``rebuild`` are set by whoever puts the gateway together."""

    def __init__(self, store: ComboStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._rows: tuple[ComboRow, ...] = ()
        self._seen = 0
        self._bare: Snapshot | None = None           # the configuration without combos of the store
        self._told: frozenset[Problem] = frozenset()
        self._failing = False
        self._changing = asyncio.Lock()
        self.ground: Callable[[], Ground] | None = None
        self.rebuild: Callable[[], None] | None = None

    def apply(self, snapshot: Snapshot) -> Snapshot:
        """The configuration with the combos of the store; what is wrong with them is told once."""
        self._bare = snapshot
        made = stored.merged(snapshot, self._rows)
        found = frozenset(made.warnings[len(snapshot.warnings):])
        for path, message in found - self._told:
            log.warning("%s: %s", path, message)
        self._told = found
        return made

    async def refresh(self) -> bool:
        """Take over what anybody changed since; False where nothing did. Never raises: what was known stands."""
        try:
            revision = await self._store.revision()
            if revision == self._seen:
                return False
            self._rows, self._seen = tuple(await self._store.rows()), revision
        except GatewayError as error:
            if not self._failing:
                log.error("combos of the store cannot be read: %s", error.message)
            self._failing = True
            return False
        self._failing = False
        if self.rebuild is not None:
            self.rebuild()
        return True

    # ------------------------------------------------------------------ what there is
    def listed(self) -> list[dict[str, Any]]:
        """Every combo as data: the configuration's in its order, then the store's in theirs."""
        ground = self._ground()
        rows = {row.name: row for row in self._rows}
        own = {plan.name for plan in self._written()}
        found = [self._view(plan, None if plan.name in own else rows.get(plan.name), ground) for plan in ground.snapshot.combos]
        served = {plan.name for plan in ground.snapshot.combos if plan.name not in own}
        return found + [self._lost(row) for row in self._rows if row.name not in served]

    def find(self, name: str) -> dict[str, Any]:
        """Raises not_found."""
        entry = next((entry for entry in self.listed() if entry["name"] == name), None)
        if entry is None:
            raise GatewayError("not_found", f"There is no combo {name[:200]!r}.", param="name")
        return entry

    # ------------------------------------------------------------------ changes
    async def put(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Make a combo, or change the one of that name: a table as in [[combos]]. Raises ConfigError with every problem by its
        path. Returns its entry, with what is to be warned of."""
        if not isinstance(raw, Mapping):
            raise ConfigError([("", "must be a table")])
        async with self._changing:
            await self.refresh()
            table, warnings = stored.judged(self._configured(), raw, self._rows)
            known = next((row for row in self._rows if row.name == table.name), None)
            if known is None and len(self._rows) >= MAX_COMBOS:
                raise ConfigError([("name", f"there are {len(self._rows)} combos in the store, and there may not be more")])
            place = known.place if known is not None else max((row.place for row in self._rows), default=0) + 1
            await self._change([ComboRow(name=table.name, place=place, body=stored.body_of(raw), changed=self._clock.wall())])
            return self.find(table.name) | {"warnings": [f"{path}: {message}" for path, message in warnings]}

    async def delete(self, name: str) -> None:
        """Raises not_found, bad_request where others are made of it."""
        async with self._changing:
            await self.refresh()
            self._own(name)
            if users := stored.users(self._rows, name):
                raise bad_request(f"The combo {name!r} is part of {', '.join(users[:5])}; change those first.", "name")
            await self._change([], [name])

    async def order(self, names: Sequence[str]) -> list[str]:
        """Put these first, in this order; the others follow as they stood. Returns all names of the store."""
        async with self._changing:
            await self.refresh()
            for name in names:
                self._own(name)
            if len(set(names)) != len(names):
                raise bad_request("A combo is named twice.", "names")
            rows = {row.name: row for row in self._rows}
            wanted = [*names, *(name for name in rows if name not in set(names))]
            await self._change([msgspec.structs.replace(rows[name], place=place) for place, name in enumerate(wanted, 1)
                                if rows[name].place != place])
            return wanted

    async def test(self, name: str) -> list[Probed]:
        """Ask every target of a combo something tiny, each by one of its keys. Costs a few tokens; health is not changed by it.
        Raises not_found."""
        ground = self._ground()
        combo = ground.catalog.combos.get(name)
        if combo is None:
            self.find(name)
            raise GatewayError("no_provider", f"The combo {name[:200]!r} has no target left.", param="name")
        chosen: dict[str, Candidate] = {}
        for leg in combo.legs():
            if leg.candidates:
                now = ground.clock.now()
                free = [one for one in leg.candidates if ground.health.cooldown(one, now) is None]
                chosen.setdefault(leg.target.label, (free or leg.candidates)[0])
        room = asyncio.Semaphore(AT_ONCE)

        async def one(candidate: Candidate) -> Probed:
            async with room:
                return await probe(candidate, ground)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(candidate)) for candidate in list(chosen.values())[:MAX_PROBES]]
        return [task.result() for task in tasks]

    # ------------------------------------------------------------------ inside
    async def _change(self, put: Sequence[ComboRow], drop: Sequence[str] = ()) -> None:
        await self._store.change(put, drop)
        if not await self.refresh():
            raise GatewayError("internal", "The combos could not be stored.", status=503)

    def _own(self, name: str) -> ComboRow:
        found = next((row for row in self._rows if row.name == name), None)
        if found is None:
            where = "; it stands in the configuration, and is changed there" if any(
                plan.name == name for plan in self._written()) else ""
            raise GatewayError("not_found", f"There is no combo {name[:200]!r} in the store{where}.", param="name")
        return found

    def _view(self, plan: Plan, row: ComboRow | None, ground: "Ground") -> dict[str, Any]:
        combo = ground.catalog.combos.get(plan.name)
        where = f"store.combos.{plan.name}"
        steps = [{"target": step.target} if step.target else {"combo": step.combo} for step in plan.steps]
        return {"name": plan.name, "source": "config" if row is None else "store", "strategy": plan.strategy, "steps": steps,
                "targets": [target.label for target in combo.targets] if combo is not None else [],
                "table": None if row is None else stored.written(row), "changed": 0.0 if row is None else row.changed,
                "warnings": [f"{path[len(where):].lstrip('.') or 'combo'}: {message}" for path, message in ground.snapshot.warnings
                             if row is not None and (path == where or path.startswith((f"{where}.", f"{where}[")))]}

    def _lost(self, row: ComboRow) -> dict[str, Any]:
        """One that is kept and not served: its name is the configuration's, or this version cannot read it."""
        where = f"store.combos.{row.name}"
        return {"name": row.name, "source": "store", "strategy": "", "steps": [], "targets": [], "table": stored.written(row),
                "changed": row.changed, "warnings": [message for path, message in sorted(self._told) if path.startswith(where)]}

    def _ground(self) -> "Ground":
        assert self.ground is not None
        return self.ground()

    def _configured(self) -> Snapshot:
        assert self._bare is not None
        return self._bare

    def _written(self) -> tuple[Plan, ...]:
        return self._configured().combos
