"""``gateway migrate``: does the store have the tables of this version, and if not, make them."""
import sqlite3
from pathlib import Path

import click

from gateway.cli.copies import store_file, told
from gateway.cli.source import config_option, json_option

BEHIND = 1


@click.command(epilog="""\b
Examples:
  gateway migrate
  gateway migrate --check && echo up to date""")
@config_option
@json_option
@click.option("--check", is_flag=True, help="Only look; exits with 1 where something would be done.")
def command(config: Path | None, as_json: bool, check: bool) -> None:
    """Bring the store's tables up to date, one numbered step after the other, all or none.

    Every start of a gateway does the same; this is for those who want to see it first. Other gateways may run: they go on.
    """
    from gateway.cli import show
    from gateway.store import copying
    from gateway.store.migrate import migrations

    path = store_file(config, "its tables are made by the next start")
    known = migrations()
    with told("migrating"):
        before = copying.version(path) if path.exists() else 0
        steps = [step.name.removesuffix(".sql") for step in known[before:]]
        if steps and not check:
            upgrade(path)
    if as_json:
        show.as_json({"store": str(path), "from": before, "to": before if check else len(known), "known": len(known), "steps": steps})
    else:
        for step in steps:
            click.echo(f"{'would run' if check else 'ran'} {step}")
        click.echo(f"{path}: tables are version {before if check else len(known)} of {len(known)}")
    if steps and check:
        raise SystemExit(BEHIND)


def upgrade(path: Path) -> None:
    """By the same code as a start."""
    from gateway.cli.loop import run
    from gateway.store.migrate import Unfit
    from gateway.store.sqlite_file import SqliteFile
    from gateway.store.writer import Writer

    async def work() -> str:
        writer = Writer(SqliteFile(path))
        await writer.open()
        failing = writer.failing
        await writer.close()
        return failing
    try:
        if failing := run(work()):
            raise Unfit(failing)
    except sqlite3.Error as error:
        raise Unfit(str(error)) from None
