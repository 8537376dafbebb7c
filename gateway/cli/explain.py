"""``gateway explain``: who would serve this model, in which order, and why?"""
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import click

from gateway.cli.source import config_option, json_option, refuse, snapshot_or_exit
from gateway.config.catalog import catalog
from gateway.core.errors import GatewayError
from gateway.core.request import Request
from gateway.routing.explain import Place, as_data, explain
from gateway.routing.health import Health


@click.command(epilog="""\b
Examples:
  gateway explain auto
  gateway explain groq/llama-3.3-70b-versatile --json
  gateway explain auto --tools --tokens 60000        as for an agent with a long history
  gateway explain auto --url http://127.0.0.1:8788   as it is in the gateway that runs there""")
@click.argument("model")
@config_option
@json_option
@click.option("--tools", is_flag=True, help="As if the request offered tools.")
@click.option("--image", is_flag=True, help="As if it held an image.")
@click.option("--tokens", type=click.IntRange(0), default=0, metavar="N", help="As if its prompt had N tokens.")
@click.option("-n", "choices", type=click.IntRange(1), default=1, metavar="N", help="As if it asked for N choices.")
@click.option("--url", metavar="URL", help="Ask the gateway that runs there, with its cooldowns, sessions and full accounts.")
@click.option("--key", metavar="KEY", envvar="GATEWAY_ADMIN_KEY", help="Key of [admin] for --url. [env: GATEWAY_ADMIN_KEY]")
def command(model: str, config: Path | None, as_json: bool, tools: bool, image: bool, tokens: int, choices: int, url: str | None,
            key: str | None) -> None:
    """Show which targets would serve MODEL now, in order, with the reason for each place and each skip.

    No upstream is called. A process of its own knows no cooldowns of a gateway that runs: without --url what is shown is what the
    configuration says.
    """
    from gateway.cli import show

    if url:
        rows = there(url, key, {"model": model, "tools": str(tools).lower(), "image": str(image).lower(), "tokens": tokens,
                                "n": choices})
    else:
        rows = as_data(here(model, config, tools, image, tokens, choices))
    if as_json:
        show.as_json(rows)
        return
    show.table(("place", "target", "key", "why"), [line(row) for row in rows], right=("place", "key"))


def there(url: str, key: str | None, query: dict[str, Any]) -> list[dict[str, Any]]:
    """What a running gateway says."""
    from gateway.cli.remote import asked

    try:
        return list(asked(url, "/admin/api/explain", key, query)["places"])
    except (KeyError, TypeError) as error:
        raise click.ClickException(f"no gateway answers at {url}") from error


def here(model: str, config: Path | None, tools: bool, image: bool, tokens: int, choices: int) -> list[Place]:
    """What the configuration says."""
    snapshot = snapshot_or_exit(config)
    request = Request(wire="openai-chat", raw=b"", body=None, model=model, stream=True, n=choices, images=int(image),
                      tools={"a_tool": None} if tools else {})
    try:
        return explain(model, catalog(snapshot), Health(snapshot.routing.transient_cooldown_s, dice=Random()), request, tokens,
                       time.monotonic())
    except GatewayError as error:
        refuse([(model, error.message)])


def line(row: Mapping[str, Any]) -> tuple[object, ...]:
    place = "skip" if row["position"] is None else row["position"]
    return (place, row["label"], row["account_label"] or row["account"], row["reason"])
