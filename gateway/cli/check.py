"""``gateway check``: is a configuration good? Every problem at once."""
from pathlib import Path

import click

from gateway.cli.source import config_option, snapshot_or_exit
from gateway.config.reference import reference


@click.command(epilog="""\b
Examples:
  gateway check
  gateway check --config /etc/gateway/gateway.toml && systemctl reload gateway
  gateway check --settings > settings.md""")
@config_option
@click.option("--settings", is_flag=True, help="Print every setting with its type and default as Markdown, and check nothing.")
def command(config: Path | None, settings: bool) -> None:
    """Validate a configuration; nothing is started and no upstream is called.

    Prints every problem as `path: message` and exits with 2, or says what was found and exits with 0.
    """
    if settings:
        click.echo(reference(), nl=False)
        return
    snapshot = snapshot_or_exit(config)
    for path, message in snapshot.warnings:
        click.echo(f"warning: {path}: {message}" if path else f"warning: {message}")
    n_models = sum(len(provider.models) for provider in snapshot.providers)
    listed = ", ".join((counted(len(snapshot.providers), "provider"), counted(n_models, "model"),
                        counted(len(snapshot.keys), "client key")))
    source = snapshot.source or "no configuration file (found in the environment)"
    click.echo(f"ok: {source}: {listed}")


def counted(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
