"""`gateway tail` shows each request once, also those that came while it looked, and waits for a gateway that restarts."""
import json

import click
import pytest
from click.testing import CliRunner

from gateway.cli import root, tail
from gateway.mock import script as say
from tests.conftest import client_key, provider
from tests.talk import ask


def row(n, **more):
    return {"id": str(n), "at": 1_000.0, "request": f"req_{n}", "asked": "m", "provider": "up", "model": "m", "routed": "up/m", "key": "laptop",
            "status": 200, "outcome": "ok", "error": "", "attempts": 1, "input": 5, "output": 7, "cost_usd": None, "latency_ms": 12.3,
            "ttft_ms": None, **more}


@pytest.fixture
def there(monkeypatch):
    """A gateway with these records, newest last; ``there.queries`` is what it was asked."""
    class There:
        rows, live, queries, down = [], [], [], False

        def asked(self, url, path, key, query):
            if self.down:
                raise click.ClickException("no gateway answers")
            self.queries.append((path, dict(query)))
            if path.endswith("/live"):
                return {"count": len(self.live), "requests": self.live}
            newest = self.rows[::-1]
            start = int(query["cursor"] or 0)
            page = newest[start:start + query["limit"]]
            more = start + query["limit"] < len(newest)
            return {"requests": page, "next": str(start + query["limit"]) if more else ""}

    made = There()
    monkeypatch.setattr(tail, "asked", made.asked)
    return made


def ids(rows):
    return [int(each["id"]) for each in rows]


def test_it_begins_with_the_last_ones_and_gives_each_that_follows_once(there):
    there.rows = [row(n) for n in range(30)]
    feed = tail.Feed("http://gw", None, {})
    assert ids(feed.ended(3)) == [27, 28, 29]
    assert feed.ended(tail.PAGE) == []
    there.rows += [row(30), row(31)]
    assert ids(feed.ended(tail.PAGE)) == [30, 31]


def test_more_than_a_page_between_two_looks_is_looked_through(there):
    there.rows = [row(0)]
    feed = tail.Feed("http://gw", None, {})
    feed.ended(1)
    there.rows += [row(n) for n in range(1, 451)]
    assert ids(feed.ended(tail.PAGE)) == list(range(1, 451))


def test_what_it_remembers_is_bounded(there):
    feed = tail.Feed("http://gw", None, {})
    for start in range(0, tail.REMEMBERED * 2, 200):
        there.rows = [row(n) for n in range(start, start + 200)]
        feed.ended(tail.PAGE)
    assert len(feed._seen) == len(feed._order) == tail.REMEMBERED


def test_a_gateway_that_restarts_is_waited_for(there, monkeypatch, capsys):
    monkeypatch.setattr(tail.time, "sleep", lambda _: setattr(there, "down", next(states)))
    states = iter([True, True, False, True])
    looks = tail.polled(tail.Feed("http://gw", None, {}), 10, 1.0)
    assert next(looks) == []
    there.rows = [row(1)]
    assert ids(next(looks)) == [1]
    assert capsys.readouterr().err.count("trying again") == 1


def test_a_gateway_that_is_not_there_at_first_is_an_error(there):
    there.down = True
    result = CliRunner().invoke(root(), ["tail", "--once"])
    assert result.exit_code == 1 and "no gateway answers" in result.output


def test_filters_are_the_gateway_s(there):
    CliRunner().invoke(root(), ["tail", "--once", "--failed", "--model", "m", "--client-key", "laptop"])
    assert there.queries[0][1] == {"outcome": "failed", "model": "m", "key": "laptop", "limit": tail.PAGE, "cursor": ""}


def test_lines_have_as_many_columns_whatever_is_unknown(there):
    there.rows = [row(1), row(2, key="", routed="", provider="", outcome="refused", error="no_model", ttft_ms=3.0, cost_usd=0.5, asked="a b")]
    result = CliRunner().invoke(root(), ["tail", "--once"])
    assert {len(line.split(" ")) for line in result.output.splitlines()} == {len(tail.COLUMNS)}


def test_what_a_client_says_does_not_steer_the_terminal(there):
    there.rows = [row(1, asked="m\x1b[2J\u202e")]
    result = CliRunner().invoke(root(), ["tail", "--once"])
    assert "m?[2J?" in result.output and "\x1b" not in result.output


def test_the_screen_shows_what_runs_and_what_ended(there):
    from collections import deque

    from rich.console import Console

    live = {"age_ms": 1500.0, "key": "laptop", "model": "auto", "stream": True, "committed": True, "attempts": [{"target": "up/m"}]}
    out = Console(width=200, record=True, file=open("/dev/null", "w"))
    out.print(tail.drawn([live], deque([row(1, outcome="failed", error="timeout")]), "http://gw"))
    said = out.export_text()
    assert "1 under way" in said and "1.5 s" in said and "1 streams" in said and "timeout" in said


async def test_it_reads_what_a_real_gateway_says(gateway, upstream):
    import asyncio

    up = await upstream(say.reply("hello"))
    url = await gateway(client_key() + provider(up))
    await ask(url)
    command = ["tail", "--once", "--json", "--url", url]
    result = await asyncio.to_thread(CliRunner().invoke, root(), command)
    (told,) = map(json.loads, result.output.splitlines())
    assert told["routed"] == "up/m" and told["outcome"] == "ok"
    feed = tail.Feed(url, None, {})
    assert await asyncio.to_thread(feed.running) == []
    shown = await asyncio.to_thread(CliRunner().invoke, root(), ["tail", "--once", "--url", url])
    assert "up/m" in shown.output
