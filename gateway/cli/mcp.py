"""``gateway mcp``: the gateway as tools for an agent, on standard input and output."""
import importlib.util
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

import click

from gateway.cli import loop
from gateway.cli.serve import log_to_stderr
from gateway.cli.source import compiled, config_option
from gateway.config.load import load
from gateway.config.snapshot import Snapshot
from gateway.policy.scopes import SCOPES, granted, known

PROBE_S: Final = 2.0


def scopes_of(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> frozenset[str]:
    for value in values:
        if not known(value):
            raise click.BadParameter(f"{value!r} is no scope; there are {', '.join(SCOPES)}, and patterns such as read:*")
    return granted(values or ("*",))


@click.command(epilog="""\b
Examples:
  claude mcp add gateway -- gateway mcp                          with the gateway of this machine, or without one
  claude mcp add gateway -- gateway mcp --url http://10.0.0.5:8788 --key gw-…
  gateway mcp --offline --scope 'read:*'                         the configuration and the store, read only

Over HTTP an agent needs no command: claude mcp add --transport http gateway http://127.0.0.1:8788/mcp""")
@config_option
@click.option("--url", metavar="URL", help="The gateway that runs there; default: the configured address, if one answers.")
@click.option("--key", metavar="KEY", envvar="GATEWAY_ADMIN_KEY", default="", help="Its key of [admin], or a client key with "
              "mcp_scopes; default: the configured key of [admin]. [env: GATEWAY_ADMIN_KEY]")
@click.option("--offline", is_flag=True, help="Ask no gateway: only what the configuration and the store can tell.")
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE", callback=scopes_of,
              help="Offline: what the agent may do, such as read:*; may be repeated; default: everything.")
def command(config: Path | None, url: str | None, key: str, offline: bool, scopes: frozenset[str]) -> None:
    """Serve MCP on standard input and output.

    Passes tools on to a gateway that runs, whose [mcp] must be enabled; where none runs, serves those that need only the configuration
    and the store.
    """
    if importlib.util.find_spec("mcp") is None:
        raise click.ClickException("MCP needs a package: pip install 'gateway[mcp]'")
    if url and offline:
        raise click.UsageError("--url and --offline exclude each other.")
    log_to_stderr("warning")
    if url:
        passed_on(url.rstrip("/").removesuffix("/mcp").removesuffix("/v1"), key)
        return

    def read() -> Snapshot:
        return load(config, os.environ)

    snapshot = compiled(read)
    there = address(snapshot)
    if not offline and there and answers(there):
        passed_on(there, key or snapshot.admin.key.reveal())
    else:
        done_here(snapshot, scopes)


def passed_on(url: str, key: str) -> None:
    from gateway.mcp.stdio import Refused, there

    try:
        loop.run(there(url, key))
    except Refused as refused:
        raise click.ClickException(str(refused)) from None


def done_here(snapshot: Snapshot, scopes: frozenset[str]) -> None:
    from gateway.mcp.calling import Toolbox
    from gateway.mcp.stdio import here
    from gateway.server.offline import with_office

    kept = snapshot.store != "memory:"
    loop.run(with_office(snapshot, lambda office: here(Toolbox(office, ("config", "store") if kept else ("config",)), scopes)))


def address(snapshot: Snapshot) -> str:
    """Where a gateway with this configuration would be; "" where it takes any port."""
    server = snapshot.server
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(server.host, server.host)
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if server.tls_cert else 'http'}://{shown}:{server.port}" if server.port else ""


def answers(url: str) -> bool:
    """Does somebody accept there?"""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url + "/livez", timeout=PROBE_S):
            return True
    except urllib.error.HTTPError:
        return True
    except (OSError, ValueError):
        return False
