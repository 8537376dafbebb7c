"""``gateway providers``: which upstreams are there, configured and in the catalogue, and how is one added?"""
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from gateway.cli.source import config_option, json_option, snapshot_or_exit, stored
from gateway.providers.presets import Preset, placeholders, presets
from gateway.providers.registry import Provider
from gateway.store import seal

# For a provider that is nobody's preset: where the format that it speaks is described.
FORMAT_DOCS: Final = {
    "openai-chat": "https://platform.openai.com/docs/api-reference/chat",
    "openai-responses": "https://platform.openai.com/docs/api-reference/responses",
    "anthropic": "https://docs.anthropic.com/en/api/messages",
    "gemini": "https://ai.google.dev/api/generate-content",
    "ollama": "https://docs.ollama.com/api",
    "bedrock-converse": "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html",
    "cohere": "https://docs.cohere.com/reference/chat",
}


@click.group(invoke_without_command=True, epilog="""\b
Examples:
  gateway providers
  gateway providers --filter mistral
  gateway providers --configured --json | jq -r '.[].id'
  gateway providers add groq --write
  gateway providers test groq""")
@config_option
@json_option
@click.option("--filter", "words", metavar="WORDS", default="", help="Only those in whose id, name, format, address or models "
              "every word occurs.")
@click.option("--configured", is_flag=True, help="Leave the catalogue out.")
@click.pass_context
def command(context: click.Context, config: Path | None, as_json: bool, words: str, configured: bool) -> None:
    """List the upstreams in the order in which they are tried, then the catalogue. Keys are counted, never shown."""
    from gateway.cli import show

    if context.invoked_subcommand is not None:
        return
    providers = snapshot_or_exit(config).providers
    rows = [facts(provider) for provider in providers]
    if not configured:
        rows += catalogue({provider.preset for provider in providers})
    rows = [row for row in rows if matches(row, words.lower().split())]
    if as_json:
        show.as_json(rows)
        return
    show.table(("provider", "name", "state", "wire", "address", "auth", "keys", "models"),
               [(row["id"], row["name"], row["state"], row["wire"], row["base_url"], row["auth"], row["keys"] or "",
                 len(row["models"]) or "") for row in rows], right=("keys", "models"))


def catalogue(used: set[str]) -> Iterator[dict[str, Any]]:
    """Entries that are not configured. ``ready``: its key variable is set, so zero-config would use it."""
    for preset, models in presets().glance():
        if preset.id not in used and not preset.in_process:
            ready = any(os.environ.get(name) for name in preset.env)
            yield {"id": preset.id, "name": preset.name, "state": "ready" if ready else "", "configured": False, "wire": preset.wire,
                   "base_url": preset.base_url, "auth": preset.auth or "default", "keys": 0, "env": list(preset.env),
                   "vars": list(placeholders(preset)), "aliases": list(preset.aliases), "docs": preset.docs, "models": list(models)}


def matches(row: dict[str, Any], words: list[str]) -> bool:
    text = " ".join((row["id"], row["name"], row["wire"], row["base_url"], *row.get("aliases", ()), *row["models"])).lower()
    return all(word in text for word in words)


def facts(provider: Provider) -> dict[str, Any]:
    """What may be shown of a provider: its address may hold an account's name, but no key."""
    preset = presets().find(provider.preset) if provider.preset else None
    return {"id": provider.id, "name": provider.name, "state": "configured", "configured": True,
            "docs": preset.docs if preset is not None and preset.docs else FORMAT_DOCS.get(provider.wire, ""),
            "wire": provider.wire, "base_url": provider.base_url,
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


@command.command("add", epilog="""\b
Examples:
  gateway providers add groq                 print the lines
  gateway providers add azure --write        append them to the configuration
  gateway providers add groq --store         ask for its key, keep it in the store, sealed
  gateway providers add groq --store --label team2 --stdin < key""")
@click.argument("id")
@click.option("--write", is_flag=True, help="Append to the configuration; without one, begin gateway.toml here.")
@click.option("--store", "in_store", is_flag=True, help="Keep its key in the store, sealed under the master key; a running gateway "
              "takes it over within a second or two.")
@click.option("--label", default="", metavar="NAME", help="With --store: a name for the key; the same name replaces it.")
@click.option("--stdin", is_flag=True, help="With --store: read the key from standard input.")
@config_option
def add(id: str, write: bool, in_store: bool, label: str, stdin: bool, config: Path | None) -> None:
    """Print the lines that configure a provider of the catalogue, write them, or keep its key in the store."""
    from gateway.config.load import find

    if in_store:
        keep(id, label, sys.stdin.readline().strip() if stdin else "", config)
        return
    preset = presets().find(id)
    if preset is None:
        raise click.ClickException(f"{id!r} is not in the catalogue; try: gateway providers --filter {id}")
    lines = block(preset)
    if not write:
        click.echo(lines, nl=False)
        return
    path = find(config, os.environ) or Path("gateway.toml")
    before = path.read_text("utf-8") if path.exists() else ""
    if path.exists() and any(provider.id == preset.id for provider in snapshot_or_exit(path).providers):
        raise click.ClickException(f"{path} has a provider {preset.id!r} already")
    with path.open("a", encoding="utf-8") as file:
        file.write(("\n" if before else "") + lines)
    click.echo(f"{path}: {preset.name} added; check it with: gateway check --config {path}")


def keep(id: str, label: str, key: str, config: Path | None) -> None:
    """Put a key into the store; it is asked for where it did not come by standard input."""
    snapshot = snapshot_or_exit(config)
    if not snapshot.master_keys:
        raise click.ClickException(seal.NEEDED)
    configured = any(provider.id == id for provider in snapshot.providers)
    preset = presets().find(id)
    if not configured and preset is None:
        raise click.ClickException(f"{id!r} is neither configured nor in the catalogue; try: gateway providers --filter {id}")
    name = id if configured or preset is None else preset.id
    key = key or click.prompt(f"Key of {name}", hide_input=True, err=True).strip()
    done = stored(config, lambda store: store.accounts.add(name, key, label, configured=configured))
    click.echo(f"{done['provider']}: key {done['label']!r} is kept in the store")


@command.command("stored", epilog="""\b
Examples:
  gateway providers stored""")
@config_option
@json_option
def stored_(config: Path | None, as_json: bool) -> None:
    """List the provider keys that lie in the store, and whether the master key opens them; the keys are not shown."""
    from gateway.cli import show

    rows = stored(config, lambda store: store.accounts.listed())
    if as_json:
        show.as_json(rows)
        return
    show.table(("provider", "label", "state", "master key", "created"),
               [(row["provider"], row["label"], row["state"], row["master_key"], row["created"]) for row in rows])


@command.command("remove", epilog="""\b
Examples:
  gateway providers remove groq stored1      take this key out of the store""")
@click.argument("id")
@click.argument("label")
@config_option
def remove(id: str, label: str, config: Path | None) -> None:
    """Take a provider's key out of the store."""
    stored(config, lambda store: store.accounts.remove(id, label))
    click.echo(f"{id}: key {label!r} is no longer kept")


def block(preset: Preset) -> str:
    """One [[providers]] table with what only its user knows left to be filled in."""
    lines = ["[[providers]]", f'preset = "{preset.id}"']
    if preset.env and preset.auth not in ("none", "sigv4", "gcp", "oauth"):
        lines.append(f'api_keys = ["${{env:{preset.env[0]}}}"]')
    if preset.auth in ("sigv4", "gcp"):
        lines.append('# credentials = "${file:/path/to/credentials}"      # else those that the environment names')
    if preset.auth == "oauth":
        lines.append('oauth = { token_url = "", client_id = "", client_secret = "", refresh_token = "" }')
    if asked := {name: value for name, value in preset.vars.items() if not value or "${" in value}:
        lines.append("vars = { " + ", ".join(f'{name} = "{value}"' for name, value in asked.items()) + " }")
    if not preset.models:
        lines.append('models = ["*"]' if preset.models_url != "none" else 'models = [""]')
    return "\n".join((*lines, f"# {preset.docs}", ""))
