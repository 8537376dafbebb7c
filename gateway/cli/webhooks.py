"""``gateway webhooks``: which addresses are told of what, and do they listen?"""
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click
import msgspec

from gateway.cli.source import config_option, json_option, snapshot_or_exit
from gateway.config.schema import Webhook
from gateway.core.errors import GatewayError

if TYPE_CHECKING:
    from gateway.upstream.poster import Poster


class Told(msgspec.Struct):
    """One address. ``status`` of its answer; ``error``: why there is none."""
    place: int
    host: str                                        # the rest of an address may be a secret
    events: list[str]
    signed: bool
    status: int | None = None
    error: str = ""

    @property
    def ok(self) -> bool:
        return not self.error and self.status is not None and 200 <= self.status < 300


@click.group(epilog="""\b
Examples:
  gateway webhooks list
  gateway webhooks test --config gateway.toml    post a `test` event to each of them""")
def command() -> None:
    """Show or try the addresses of [[webhooks]]."""


@command.command("list")
@config_option
@json_option
def listed(config: Path | None, as_json: bool) -> None:
    """Which addresses are told of which events."""
    show_all([row(place, hook) for place, hook in enumerate(snapshot_or_exit(config).webhooks)], as_json)


@command.command("test")
@config_option
@json_option
def tried(config: Path | None, as_json: bool) -> None:
    """Post an event `test` to each address, signed and guarded like any other, and say what it answered.

    Exits with 1 when one does not take it.
    """
    from gateway.cli.loop import run

    rows = run(ask_all(snapshot_or_exit(config).webhooks))
    show_all(rows, as_json)
    if not all(each.ok for each in rows):
        raise SystemExit(1)


async def ask_all(hooks: tuple[Webhook, ...]) -> list[Told]:
    from gateway.upstream.poster import Poster

    poster = Poster()
    try:
        return [await ask(row(place, hook), hook, poster) for place, hook in enumerate(hooks)]
    finally:
        await poster.close()


async def ask(told: Told, hook: Webhook, poster: "Poster") -> Told:
    from gateway.observe.webhooks import deliver, written

    name, body = written("test", {"message": "This is a test of the gateway."}, time.time())
    try:
        told.status = await deliver(hook, "test", name, body, poster, time.time())
    except GatewayError as error:
        told.error = error.message
    return told


def row(place: int, hook: Webhook) -> Told:
    return Told(place=place, host=urlsplit(hook.url.reveal()).hostname or "", events=list(hook.events),
                signed=bool(hook.secret.reveal()))


def show_all(rows: list[Told], as_json: bool) -> None:
    from gateway.cli import show

    if as_json:
        show.as_json(rows)
        return
    if not rows:
        click.echo("no [[webhooks]] are configured")
        return
    show.table(("place", "host", "events", "signed", "answer"),
               [(each.place, each.host, ", ".join(each.events) or "all", "yes" if each.signed else "no",
                 each.error or each.status) for each in rows], right=("place",))
