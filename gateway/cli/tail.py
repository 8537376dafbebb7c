"""``gateway tail``: what does the gateway that runs there do now? Requests as they end, and those under way."""
import contextlib
import json
import sys
import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from gateway.cli.remote import asked
from gateway.cli.source import json_option

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

PAGE: Final = 200
PAGES: Final = 5                                 # looked through at once; what is older was overtaken
REMEMBERED: Final = PAGE * PAGES * 2
RUNNING: Final = 50
ROWS: Final = 20                                 # of ended requests on a terminal
MARKS: Final = {"ok": "green", "client_gone": "dim", "refused": "yellow", "failed": "red", "broken": "red"}

Row = dict[str, Any]


class Feed:
    """Polls one gateway; each request that ended is given once."""

    def __init__(self, url: str, key: str | None, query: dict[str, Any]) -> None:
        self._url, self._key, self._query = url, key, query
        self._seen: set[str] = set()
        self._order: deque[str] = deque()

    def ended(self, most: int) -> list[Row]:
        """Those that ended since the last look, oldest first; ``most`` at the first."""
        fresh: list[Row] = []
        first, cursor = not self._order, ""
        for _ in range(PAGES):
            page = asked(self._url, "/admin/api/requests", self._key, {**self._query, "limit": PAGE, "cursor": cursor})
            new = [row for row in page["requests"] if row["id"] not in self._seen]
            fresh += new
            cursor = page["next"]
            if first or not cursor or len(new) < len(page["requests"]):
                break
        for row in reversed(fresh):
            self._remember(row["id"])
        return fresh[:most][::-1] if first else fresh[::-1]

    def running(self) -> list[Row]:
        """Those under way, the oldest first."""
        return list(asked(self._url, "/admin/api/live", self._key, {"limit": RUNNING})["requests"])

    def _remember(self, id_: str) -> None:
        self._seen.add(id_)
        self._order.append(id_)
        if len(self._order) > REMEMBERED:
            self._seen.discard(self._order.popleft())


@click.command(epilog="""\b
Examples:
  gateway tail
  gateway tail --failed --url https://gateway.example --key …
  gateway tail --json | jq 'select(.ttft_ms > 2000)'
  gateway tail --once -n 50""")
@json_option
@click.option("--url", default="http://127.0.0.1:8788", show_default=True, metavar="URL", help="Address of the gateway.")
@click.option("--key", metavar="KEY", envvar="GATEWAY_ADMIN_KEY", help="Key of [admin]. [env: GATEWAY_ADMIN_KEY]")
@click.option("-n", "last", type=click.IntRange(0, PAGE), default=10, show_default=True, help="Requests of the past to begin with.")
@click.option("--once", is_flag=True, help="Show these, and end.")
@click.option("--failed", is_flag=True, help="Only requests that failed before anything left.")
@click.option("--model", default="", metavar="MODEL", help="Only this model.")
@click.option("--client-key", default="", metavar="NAME", help="Only the client key of this name.")
@click.option("--every", "every_s", type=click.FloatRange(0.2, 60), default=1.0, show_default=True, help="Seconds between two looks.")
def command(as_json: bool, url: str, key: str | None, last: int, once: bool, failed: bool, model: str, client_key: str,
            every_s: float) -> None:
    """Follow the requests of a gateway that runs, by its operator's API.

    At a terminal a table that renews itself, with what is under way above what has ended; in a pipe one line a request, with
    --json one JSON object a line.
    """
    query = {name: value for name, value in (("outcome", "failed" if failed else ""), ("model", model), ("key", client_key)) if value}
    feed = Feed(url, key, query)
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        if as_json or once or not sys.stdout.isatty():
            lines(feed, last, once, as_json, every_s)
        else:
            screen(feed, url, last, every_s)


def lines(feed: Feed, last: int, once: bool, as_json: bool, every_s: float) -> None:
    for rows in polled(feed, last, every_s, once):
        for row in rows:
            click.echo(json.dumps(row) if as_json else line(row))


def polled(feed: Feed, last: int, every_s: float, once: bool = False) -> Iterator[list[Row]]:
    """What ended, look by look. A gateway that does not answer at the first look is an error; later it is waited for."""
    yield feed.ended(last)
    missed = False
    while not once:
        time.sleep(every_s)
        try:
            found = feed.ended(PAGE)
        except click.ClickException as error:
            if not missed:
                click.echo(f"{error.message}; trying again", err=True)
            missed = True
            continue
        missed = False
        yield found


def screen(feed: Feed, url: str, last: int, every_s: float) -> None:
    """Until somebody presses Ctrl-C."""
    from rich.live import Live

    from gateway.cli.show import console

    kept: deque[Row] = deque(feed.ended(last), maxlen=max(last, ROWS))
    with Live(drawn(feed.running(), kept, url), console=console(), auto_refresh=False) as live:
        while True:
            time.sleep(every_s)
            try:
                kept.extend(feed.ended(PAGE))
                live.update(drawn(feed.running(), kept, url), refresh=True)
            except click.ClickException as error:
                live.update(drawn([], kept, f"{error.message}; trying again"), refresh=True)


def drawn(running: list[Row], ended: "deque[Row]", title: str) -> "Group":
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [Text(f"{title}: {len(running)} under way", style="bold")]
    if running:
        parts.append(grid(("age", "key", "model", "target", "attempts"), (
            (f"{row['age_ms'] / 1000:.1f} s", row["key"], row["model"], row["attempts"][-1]["target"] if row["attempts"] else "",
             str(len(row["attempts"])) + (" streams" if row["committed"] and row["stream"] else "")) for row in running)))
    parts.append(grid(COLUMNS, (cells(row) for row in reversed(ended)), [MARKS.get(row["outcome"], "") for row in reversed(ended)]))
    return Group(*parts)


def grid(columns: tuple[str, ...], rows: Iterator[tuple[str, ...]], styles: list[str] | None = None) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    for place, row in enumerate(rows):
        made.add_row(*(Text(plain(cell), no_wrap=True, overflow="ellipsis") for cell in row), style=styles[place] if styles else None)
    return made


COLUMNS: Final = ("time", "outcome", "status", "key", "asked", "target", "tries", "ms", "first", "in", "out", "USD", "error")


def cells(row: Row) -> tuple[str, ...]:
    """One request that ended."""
    target = row["routed"] or (f"{row['provider']}/{row['model']}" if row["provider"] else "")
    cost, first = row["cost_usd"], row["ttft_ms"]
    return (time.strftime("%H:%M:%S", time.localtime(row["at"])), row["outcome"], str(row["status"]), row["key"], row["asked"], target,
            str(row["attempts"]), f"{row['latency_ms']:.0f}", "" if first is None else f"{first:.0f}", str(row["input"]),
            str(row["output"]), "?" if cost is None else f"{cost:.4f}", row["error"])


def line(row: Row) -> str:
    """The same for a pipe; what is unknown is a dash, so that columns can be cut."""
    return " ".join(plain(cell).replace(" ", "_") or "-" for cell in cells(row))


def plain(text: str) -> str:
    """Names are chosen by clients: nothing in them may steer a terminal."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)
