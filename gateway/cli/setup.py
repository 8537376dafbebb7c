"""``gateway setup CLIENT``: what makes a coding agent use this gateway, shown or written into its settings?"""
import json
import shlex
from pathlib import Path

import click

from gateway.cli.clients import CLIENTS
from gateway.cli.clients.asking import client_argument, place, place_options
from gateway.cli.clients.place import Setup
from gateway.cli.clients.writing import write
from gateway.cli.source import config_option, json_option


@click.command(epilog="\b\nClients: " + ", ".join(CLIENTS) + """

\b
Examples:
  gateway setup claude-code
  gateway setup codex --model best --write
  eval "$(gateway setup aider --export)\"""")
@client_argument
@click.option("--write", "writing", is_flag=True, help="Put it into the client's own settings; what was there is kept beside it.")
@click.option("--export", "exporting", is_flag=True, help="Only `export NAME=value` lines, for a shell.")
@place_options
@config_option
@json_option
def command(client: str, writing: bool, exporting: bool, url: str | None, key: str | None, model: str, config: Path | None,
            as_json: bool) -> None:
    """Show how CLIENT is pointed at the gateway; --write does it.

    Without --write nothing is changed. The address is that of the configuration, or --url.
    """
    setup = CLIENTS[client](place(config, url, key, model))
    if as_json:
        click.echo(json.dumps({"client": client, "command": [setup.command, *setup.args], "env": setup.env, "docs": setup.docs,
                               "install": setup.install, "settings": None if setup.settings is None else {
                                   "path": f"~/{setup.settings.path}", "json": setup.settings.data,
                                   "text": setup.settings.text.strip() or None}}, indent=2))
    elif exporting:
        for name, value in setup.env.items():
            click.echo(f"export {name}={shlex.quote(value)}")
    elif writing:
        _write(client, setup)
    else:
        _show(client, setup)


def _write(client: str, setup: Setup) -> None:
    if setup.settings is None:
        raise click.ClickException(f"{client} keeps its settings in a form of its own; use `gateway run {client}`, or the variables "
                                   f"that `gateway setup {client}` shows")
    path, changed = write(setup.settings, Path.home())
    click.echo(f"{'written' if changed else 'unchanged'}: {path}")
    if setup.then:
        click.echo(f"now type:  {setup.then}")


def _show(client: str, setup: Setup) -> None:
    if setup.env:
        click.secho("In the environment", bold=True)
        for name, value in setup.env.items():
            click.echo(f"  export {name}={shlex.quote(value)}")
        click.echo("  " + shlex.join((setup.command, *setup.args)))
    if setup.settings is not None:
        click.secho(f"Or for good, in ~/{setup.settings.path}  (gateway setup {client} --write)", bold=True)
        text = setup.settings.text.strip() or json.dumps(setup.settings.data, indent=2)
        click.echo("\n".join(f"  {line}" for line in text.splitlines()))
    click.secho("Or at once", bold=True)
    click.echo(f"  gateway run {client}")
    click.echo(f"Its own words: {setup.docs}")
