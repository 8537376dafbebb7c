"""``gateway usage``: how much was asked, by whom, of whom, and what did it cost?"""
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from gateway.cli.source import config_option, json_option, snapshot_or_exit
from gateway.core.clock import iso, moment
from gateway.core.errors import GatewayError

DAY_S: Final = 86_400
UNITS: Final = {"h": 3_600, "d": DAY_S, "w": 7 * DAY_S}
SPANS: Final = re.compile(r"(\d{1,5})([hdw])")
GROUPS: Final = ("model", "provider", "key", "client", "hour", "day")
SHOWN: Final = ("requests", "failed", "refused", "input", "cached", "output", "cost $", "avg ms")


def when(context: click.Context, option: click.Parameter, value: str | None) -> float | None:
    """``today``, ``all``, a span back from now, or an ISO date or time: epoch seconds."""
    if value is None:
        return None
    text, now = value.strip().lower(), time.time()
    if text in ("today", "all"):
        return now // DAY_S * DAY_S if text == "today" else 0.0
    if (found := SPANS.fullmatch(text)) is not None:
        return now - int(found[1]) * UNITS[found[2]]
    try:
        return moment(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is no time; write 24h, 7d, 4w, today, all or 2027-01-31") from None


@click.command(epilog="""\b
Examples:
  gateway usage                                   the last 30 days by model
  gateway usage --since today --by key
  gateway usage --since 7d --by day --by provider
  gateway usage --since 2027-01-01 --json | jq '.total.cost_usd'""")
@config_option
@json_option
@click.option("--by", multiple=True, type=click.Choice(GROUPS), help="What is told apart; may be repeated. Default: model.")
@click.option("--since", default="30d", callback=when, metavar="WHEN", help="24h, 7d, 4w, today, all, or a date (UTC). Default: 30d.")
@click.option("--until", callback=when, metavar="WHEN", help="As --since; default: now.")
@click.option("--key", metavar="NAME", help="Of this client key alone.")
@click.option("--provider", metavar="ID", help="Of this provider alone.")
@click.option("--model", metavar="ID", help="Of this model alone.")
def command(config: Path | None, as_json: bool, by: tuple[str, ...], since: float, until: float | None, key: str | None,
            provider: str | None, model: str | None) -> None:
    """Show requests, tokens and cost from the records; a gateway may be running or not.

    Times count in whole hours, with --by day in whole days. A cost with a + is not all of it: some models have no known price.
    """
    from gateway.cli import show

    only = {name: value for name, value in (("key", key), ("provider", provider), ("model", model)) if value}
    rows, total = found(config, by or ("model",), since, until or 0.0, only)
    groups = [name for name in ("hour", "day", "provider", "model", "key", "client") if name in (by or ("model",))]
    if as_json:
        show.as_json({"since": iso(since) or None, "until": iso(until or 0.0) or None, "rows": [facts(row, groups) for row in rows],
                      "total": facts(total, [])})
        return
    cells = [(*[named(row, group) for group in groups], *figures(row)) for row in rows]
    show.table((*groups, *SHOWN), [*cells, *([("total", *[""] * (len(groups) - 1), *figures(total))] if rows else [])], right=SHOWN)


def found(config: Path | None, by: tuple[str, ...], since: float, until: float, only: dict[str, str]) -> tuple[list[Any], Any]:
    """Rows and their sum."""
    from gateway.cli.loop import run
    from gateway.store import totals
    from gateway.store.lookup import looking

    address = snapshot_or_exit(config).store
    step: totals.Step = "hour" if "hour" in by else "day" if "day" in by else ""
    dimensions = [name for name in totals.DIMENSIONS if name in by]
    narrowed: dict[totals.Dimension, str] = {name: only[name] for name in totals.DIMENSIONS if name in only}

    async def ask() -> tuple[list[Any], Any]:
        async with looking(address) as read:
            rows = await totals.usage(read, dimensions, since, until, step, narrowed)
            return rows, await totals.totals(read, since, until, narrowed)
    try:
        return run(ask())
    except GatewayError as error:
        raise click.ClickException(error.message) from None


def named(row: Any, group: str) -> str:
    if group in ("hour", "day"):
        return iso(row.at)[:10 if group == "day" else 16].replace("T", " ")
    return getattr(row, group) or "-"


def figures(row: Any) -> tuple[str, ...]:
    cost = f"{row.cost_usd:,.4f}" + ("+" if row.unpriced else "")
    return (f"{row.requests:,}", f"{row.failed:,}", f"{row.refused:,}", f"{row.input:,}", f"{row.cached:,}", f"{row.output:,}", cost,
            f"{row.latency_ms / row.requests:,.0f}" if row.requests else "")


def facts(row: Any, groups: Sequence[str]) -> dict[str, Any]:
    """For programs: what it is of, and every sum."""
    sums = {name: value for name, value in msgspec.structs.asdict(row).items() if name not in ("at", *GROUPS)}
    return {group: named(row, group) for group in groups} | sums | {"failed": row.failed}
