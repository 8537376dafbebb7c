"""How is something printed for people? Tables by rich, imported here and by nothing that serves."""
from collections.abc import Iterable, Sequence
from typing import Any

import click
import msgspec
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[str] = ()) -> None:
    """One line a row at a terminal and in a pipe alike; columns named in ``right`` hold numbers."""
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        grid.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        # Text, not markup: a model's name may hold brackets.
        grid.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    console().print(grid)


def console() -> Console:
    """In a pipe as wide as the rows need, so that grep and cut see whole lines."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=240)


def as_json(value: Any) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def thousands(number: int | None) -> str:
    return "" if number is None else f"{number:,}"
