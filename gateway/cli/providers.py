"""``gateway providers``: which upstreams are configured?"""
from pathlib import Path
from typing import Any

import click

from gateway.cli.source import config_option, json_option, snapshot_or_exit
from gateway.providers.registry import Provider


@click.group(invoke_without_command=True, epilog="""\b
Examples:
  gateway providers
  gateway providers --json | jq -r '.[].id'
  gateway providers test groq""")
@config_option
@json_option
@click.pass_context
def command(context: click.Context, config: Path | None, as_json: bool) -> None:
    """List the upstreams in the order in which they are tried. Keys are counted, never shown."""
    from gateway.cli import show

    if context.invoked_subcommand is not None:
        return

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


@command.command("test", epilog="""\b
Examples:
  gateway providers test
  gateway providers test groq --json""")
@click.argument("id", required=False)
@config_option
@json_option
def test(id: str | None, config: Path | None, as_json: bool) -> None:
    """Try the keys by asking for the list of models, which costs nothing. Exit status 1 if one is bad or cannot be tried."""
    from gateway.cli import show
    from gateway.cli.loop import run
    from gateway.jobs.validate import validate
    from gateway.server.compose import with_means

    snapshot = snapshot_or_exit(config)
    chosen = [provider for provider in snapshot.providers if id is None or provider.id == id]
    if not chosen:
        known = ", ".join(provider.id for provider in snapshot.providers)
        raise click.ClickException(f"{id!r} is not configured; there are: {known or 'none'}")
    found = run(with_means(snapshot, lambda means: validate(chosen, means)))
    if as_json:
        show.as_json([{name: getattr(verdict, name) for name in verdict.__struct_fields__} for verdict in found])
    else:
        show.table(("provider", "account", "state", "models", "detail"),
                   [(v.provider, v.account, v.state, v.models or "", v.detail) for v in found], right=("models",))
    if any(verdict.state in ("bad", "unreachable") for verdict in found):
        raise SystemExit(1)
