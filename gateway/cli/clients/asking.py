"""Which gateway is meant? The options that ``setup`` and ``run`` share, and what they make of a configuration."""
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from gateway.cli.clients import CLIENTS
from gateway.cli.clients.place import NO_KEY, Place
from gateway.config.load import load
from gateway.config.problems import ConfigError

ALIVE_S = 3.0

F = TypeVar("F", bound=Callable[..., Any])


def place_options(command: F) -> F:
    for option in (
        click.option("--model", default="", metavar="NAME", help="What the client shall ask for. Default: its own names where the "
                     "gateway maps them (Claude, Gemini), else auto."),
        click.option("--key", envvar="GATEWAY_KEY", metavar="KEY", help="Client key.  [env: GATEWAY_KEY]"),
        click.option("--url", envvar="GATEWAY_URL", metavar="URL", help="Address of the gateway; else that of the configuration."
                     "  [env: GATEWAY_URL]"),
    ):
        command = option(command)
    return command


def client_argument(command: F) -> F:
    return click.argument("client", type=click.Choice(list(CLIENTS)), metavar="CLIENT")(command)


def place(config: Path | None, url: str | None, key: str | None, model: str) -> Place:
    """Raises ClickException where a key is needed and none is given."""
    needs_key = False
    if url is None:
        try:
            snapshot = load(config, os.environ)
        except ConfigError as error:
            raise click.ClickException(f"{error.problems[0][0]}: {error.problems[0][1]}; or name the gateway: --url") from None
        server = snapshot.server
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(server.host, server.host)
        url = f"{'https' if server.tls_cert else 'http'}://{host}:{server.port}"
        needs_key = bool(snapshot.keys) or snapshot.keys_required
    if needs_key and not key:
        raise click.ClickException("this gateway wants a client key: --key KEY or GATEWAY_KEY; `gateway keys create NAME` makes one")
    return Place(url.rstrip("/").removesuffix("/v1"), key or NO_KEY, model)


def alive(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/livez", timeout=ALIVE_S) as answer:
            return bool(answer.status == 200)
    except (OSError, ValueError, urllib.error.URLError):
        return False
