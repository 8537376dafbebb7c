"""``gateway run CLIENT -- …``: a coding agent on this gateway, without a change to any file of its."""
import os
import shutil
from pathlib import Path

import click

from gateway.cli.clients import CLIENTS
from gateway.cli.clients.asking import alive, client_argument, place, place_options
from gateway.cli.source import config_option


@click.command(context_settings={"ignore_unknown_options": True}, epilog="\b\nClients: " + ", ".join(CLIENTS) + """

\b
Examples:
  gateway run claude-code
  gateway run codex --model best -- exec "explain this repository"
  gateway run aider -- --no-auto-commits""")
@client_argument
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGS…]")
@place_options
@config_option
def command(client: str, arguments: tuple[str, ...], url: str | None, key: str | None, model: str, config: Path | None) -> None:
    """Launch CLIENT with its variables set to the gateway; ARGS are the client's own."""
    target = place(config, url, key, model)
    setup = CLIENTS[client](target)
    if not setup.env and not setup.args:
        raise click.ClickException(f"{client} takes its address from its settings only: gateway setup {client} --write")
    program = shutil.which(setup.command)
    if program is None:
        raise click.ClickException(f"{setup.command} is not installed ({setup.install})")
    if not alive(target.url):
        raise click.ClickException(f"no gateway answers at {target.url}: start it with `gateway serve`, or name another one: --url")
    os.execve(program, [setup.command, *setup.args, *arguments], {**os.environ, **setup.env})
