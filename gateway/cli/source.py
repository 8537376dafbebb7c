"""Where does a command's configuration come from, and how are its problems told?"""
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from gateway.config.load import load
from gateway.config.problems import ConfigError, Problem, render
from gateway.config.snapshot import Snapshot

BAD_CONFIG = 2

F = TypeVar("F", bound=Callable[..., Any])


def config_option(command: F) -> F:
    """``--config``, the same on every command."""
    return click.option("--config", "-c", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                        help="The configuration. Else $GATEWAY_CONFIG, ./gateway.toml, the user's, the system's; with "
                             "none of them the gateway uses the provider keys it finds in the environment.")(command)


def json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")(command)


def snapshot_or_exit(config: Path | None) -> Snapshot:
    """The compiled configuration of a command; see ``compiled``."""
    return compiled(lambda: load(config, os.environ))


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
