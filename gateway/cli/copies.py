"""What do the commands about the store's file share? Its path, a progress bar, and what is wrong as one line."""
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from gateway.cli.source import snapshot_or_exit
from gateway.store.copying import Progress
from gateway.store.migrate import Unfit


def store_file(config: Path | None, other: str) -> Path:
    """The file that the configuration names; ``other``: what to do where it names a server."""
    address = snapshot_or_exit(config).store
    if address.startswith("sqlite:"):
        return Path(address.removeprefix("sqlite:"))
    if address.startswith("postgresql:"):
        raise click.ClickException(f"the store is PostgreSQL; {other}")
    raise click.ClickException('store.url is "memory:": there is no file')


@contextmanager
def told(what: str) -> Iterator[Progress]:
    """Progress at a terminal, silence in a pipe; what is wrong ends the command."""
    try:
        if not sys.stderr.isatty():
            yield lambda done, total: None
            return
        from rich.console import Console
        from rich.progress import Progress as Bar
        with Bar(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
    except (Unfit, OSError) as error:
        raise click.ClickException(str(error)) from None


def megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1_048_576:,.1f} MB"
