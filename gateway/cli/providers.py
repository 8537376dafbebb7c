"""``gateway providers``: which upstreams are configured?"""
from pathlib import Path
from typing import Any

import click

from gateway.cli.source import config_option, json_option, snapshot_or_exit
from gateway.providers.registry import Provider


@click.command(epilog="""\b
Examples:
  gateway providers
  gateway providers --json | jq -r '.[].id'""")
@config_option
@json_option
def command(config: Path | None, as_json: bool) -> None:
    """List the upstreams in the order in which they are tried. Keys are counted, never shown."""
    from gateway.cli import show

    rows = [facts(provider) for provider in snapshot_or_exit(config).providers]
    if as_json:
        show.as_json(rows)
        return
    show.table(("provider", "wire", "address", "auth", "keys", "models"),
               [(row["id"], row["wire"], row["base_url"], row["auth"], row["keys"], len(row["models"])) for row in rows],
               right=("keys", "models"))


def facts(provider: Provider) -> dict[str, Any]:
    """What may be shown of a provider: its address may hold an account's name, but no key."""
    return {"id": provider.id, "name": provider.name, "wire": provider.wire, "base_url": provider.base_url,
            "auth": provider.auth, "keys": sum(1 for account in provider.accounts if account.key),
            "loopback": provider.loopback, "models": list(provider.models)}
