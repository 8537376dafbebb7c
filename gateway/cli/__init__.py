"""Which commands are there? One row a verb; its file is imported when the verb is used."""
import gc
import importlib
from typing import Final

import click

import gateway

# verb -> what the list of commands says about it; `gateway/cli/<verb>.py` (- is _) holds it as `command`
COMMANDS: Final[dict[str, str]] = {
    "serve": "Run the gateway.",
    "check": "Validate a configuration and name every problem.",
    "explain": "Show which targets would serve a model now, and why.",
    "models": "List what can be asked for.",
    "providers": "List the upstreams, their accounts and models.",
    "setup": "Point a coding agent at the gateway.",
    "run": "Launch a coding agent on the gateway.",
    "keys": "Make, list, rotate and revoke client keys.",
    "mcp": "Be the gateway's tools for an agent, on standard input and output.",
    "usage": "Show requests, tokens and cost, by model, key and time.",
    "backup": "Copy the store, also while a gateway runs.",
    "restore": "Put a copy in the place of the store.",
    "migrate": "Bring the store's tables up to date.",
    "admin-password": "Make the hash of the operator's password.",
    "tail": "Follow the requests of a gateway that runs.",
    "webhooks": "Show or try the addresses that are told of events.",
    "bench": "Load-test a gateway against the built-in upstream.",
    "doctor": "Look for what usually goes wrong on this machine.",
}

# New objects between two looks for garbage: what is made while code is loaded stays, and looking took a twelfth of a start. A
# server sets its own when it is ready.
LOADING: Final = 500_000


class Verbs(click.Group):
    """Commands by name, imported on use: `serve` must not pay for what `models` prints with."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        found = importlib.import_module(f"gateway.cli.{cmd_name.replace('-', '_')}").command
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def root() -> click.Group:
    """All commands below one name."""
    text = """A self-hosted LLM gateway that answers in whole turns.

    \b
    gateway serve                          run it; without a configuration it finds your keys, or a demo
    gateway check --config gateway.toml    say what is wrong with a configuration
    gateway COMMAND --help                 options and examples of one command
    """
    group = Verbs("gateway", help=text, context_settings={"help_option_names": ["-h", "--help"]})
    return click.version_option(gateway.__version__, prog_name="gateway")(group)


def main() -> None:
    """The console script, and ``python -m gateway``."""
    gc.set_threshold(LOADING)
    root()(prog_name="gateway")
