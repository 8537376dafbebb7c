"""``gateway explain``: who would serve this model, in which order, and why?"""
import time
from pathlib import Path
from random import Random

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
  gateway explain auto --tools --tokens 60000        as for an agent with a long history""")
@click.argument("model")
@config_option
@json_option
@click.option("--tools", is_flag=True, help="As if the request offered tools.")
@click.option("--image", is_flag=True, help="As if it held an image.")
@click.option("--tokens", type=click.IntRange(0), default=0, metavar="N", help="As if its prompt had N tokens.")
@click.option("-n", "choices", type=click.IntRange(1), default=1, metavar="N", help="As if it asked for N choices.")
def command(model: str, config: Path | None, as_json: bool, tools: bool, image: bool, tokens: int, choices: int) -> None:
    """Show which targets would serve MODEL now, in order, with the reason for each place and each skip.

    No upstream is called. A process of its own knows no cooldowns of a gateway that runs: what is shown is what the
    configuration says.
    """
    from gateway.cli import show

    snapshot = snapshot_or_exit(config)
    request = Request(wire="openai-chat", raw=b"", body=None, model=model, stream=True, n=choices, images=int(image),
                      tools={"a_tool": None} if tools else {})
    try:
        places = explain(model, catalog(snapshot), Health(snapshot.routing.transient_cooldown_s, dice=Random()), request, tokens,
                         time.monotonic())
    except GatewayError as error:
        refuse([(model, error.message)])
    if as_json:
        show.as_json(as_data(places))
        return
    show.table(("place", "target", "key", "why"), [line(place) for place in places], right=("place", "key"))


def line(place: Place) -> tuple[object, ...]:
    return ("skip" if place.position is None else place.position, place.label, place.account_label or place.account, place.reason)
