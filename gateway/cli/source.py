"""Where does a command's configuration come from, and how are its problems told?"""
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from gateway.config.load import load
from gateway.config.problems import ConfigError, Problem, render
from gateway.config.snapshot import Snapshot
from gateway.core.errors import GatewayError

if TYPE_CHECKING:
    from gateway.server.compose import Offline

BAD_CONFIG = 2

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def inherited(context: click.Context, option: click.Parameter, value: Any) -> Any:
    """Written before a command's own command it means that as well: `gateway keys -c FILE create NAME` is not another store."""
    return value or (context.parent.params.get(option.name or "") if context.parent is not None else None) or value


def config_option(command: F) -> F:
    """``--config``, the same on every command."""
    return click.option("--config", "-c", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                        callback=inherited,
                        help="The configuration. Else $GATEWAY_CONFIG, ./gateway.toml, the user's, the system's; with "
                             "none of them the gateway uses the provider keys it finds in the environment.")(command)


def json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, callback=inherited, help="Print JSON for programs.")(command)


def snapshot_or_exit(config: Path | None) -> Snapshot:
    """The compiled configuration of a command; see ``compiled``."""
    return compiled(lambda: load(config, os.environ))


def stored(config: Path | None, work: "Callable[[Offline], Awaitable[T]]") -> T:
    """Do something with the store that the configuration names; a gateway that runs may use it at the same time."""
    from gateway.cli.loop import run
    from gateway.server.compose import with_store

    snapshot = snapshot_or_exit(config)
    if snapshot.store == "memory:":
        raise click.ClickException('store.url is "memory:", which only the running gateway knows; write keys into the configuration, '
                                   "or configure a store that is kept")
    try:
        return run(with_store(snapshot, work))
    except GatewayError as error:
        raise click.ClickException(error.message) from None


def compiled(read: Callable[[], Snapshot]) -> Snapshot:
    """What ``read`` gives; else every problem on standard error and exit status 2."""
    try:
        return read()
    except ConfigError as error:
        refuse(error.problems)


def refuse(problems: list[Problem]) -> NoReturn:
    """One ``path: message`` line a problem."""
    print(render(problems), file=sys.stderr)
    raise SystemExit(BAD_CONFIG)
