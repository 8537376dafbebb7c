"""What does one of several workers know of the others? It answers what they ask, and asks them where the whole machine is meant."""
from typing import TYPE_CHECKING, Any

import msgspec

from gateway.admin.live import here
from gateway.admin.office import Office
from gateway.mcp.letters import Letters
from gateway.observe.families import Dump
from gateway.shared.local import LocalHub
from gateway.surfaces.desk import Desk

if TYPE_CHECKING:
    from gateway.server.listen import Listener

def join(listener: "Listener", crew: LocalHub) -> None:
    """Answer the others, and ask them where the whole machine is meant."""
    desk, office = listener.desk, listener.office
    _metrics(desk, crew)
    _page(office, crew)
    _streams(listener.mcp.letters, crew)
    listener.jobs.leads = crew.number == 0


def _metrics(desk: Desk, crew: LocalHub) -> None:
    meter = desk.meter
    if meter is None:
        return

    async def own(given: Any) -> Dump:
        return await meter.dump()

    async def others(mine: Dump) -> list[Dump]:
        return [msgspec.convert(dump, Dump) for dump in await crew.gather("metrics", mine) if dump is not None]

    crew.answers["metrics"] = own
    meter.others = others


def _page(office: Office, crew: LocalHub) -> None:
    async def others(what: str, given: Any) -> list[Any]:
        return [answer for answer in await crew.gather(what, None, given) if answer is not None]

    async def live(limit: Any) -> Any:
        ground = office.ground
        return msgspec.to_builtins(here(ground.inflight, ground.clock.now(), int(limit)))

    async def overview(minutes: Any) -> Any:
        ground = office.ground
        return {"minutes": office.series.data(ground.clock.wall(), int(minutes)), "total": office.series.total,
                "in_flight": ground.inflight.count}

    office.others = others
    crew.answers |= {"live": live, "overview": overview}


def _streams(letters: Letters, crew: LocalHub) -> None:
    """A client of MCP posts to any worker, and one of them holds its stream."""
    async def others(letter: Any) -> tuple[list[Any], bool]:
        answers = await crew.gather("mcp", None, letter)
        return [answer for answer in answers if answer is not None], len(answers) >= crew.nodes - 1

    crew.answers["mcp"] = letters.take
    letters.others = others
