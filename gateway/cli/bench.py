"""``gateway bench``: how fast is a gateway on this machine?"""
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
import msgspec

from gateway.cli.histogram import drawn
from gateway.cli.source import json_option
from gateway.mock.bench_upstream import MODEL
from gateway.mock.load import Progress, run_bench
from gateway.mock.scenarios import DEMANDING, SCENARIOS, Row

KEY: Final = "gw-bench-key"
START_S: Final = 20.0
OFFERED: Final = tuple(name for name in SCENARIOS if name not in DEMANDING)
USUAL: Final = ("whole-1", "whole-32", "streams-20", "streams-200")

# A private gateway as in service: a client key to check, routing, cooldowns and turn checks on.
CONFIG: Final = """
[store]
url = "memory:"
[log]
level = "warning"
[[auth.keys]]
name = "bench"
key = "{key}"
[[providers]]
id = "bench"
base_url = "{address}"
api_keys = ["sk-bench"]
models = ["{model}"]
"""


class Measured(msgspec.Struct, frozen=True):
    """One scenario, with the gateway's own CPU microseconds an answer where they are known."""
    row: Row
    cpu_us: float | None = None


class Private(msgspec.Struct, frozen=True):
    """A gateway of our own, in a process of its own."""
    url: str
    pid: int


@click.command(epilog="""\b
Examples:
  gateway bench
  gateway bench --scenario streams-200 --seconds 10
  gateway bench --direct                             what this machine and this client could do at most
  gateway bench --url http://127.0.0.1:8788 --key "$GATEWAY_KEY" --model bench/bench-model""")
@click.option("--url", metavar="URL",
              help="A gateway that runs, with a provider that leads to `python -m gateway.mock.bench_upstream`.")
@click.option("--key", metavar="KEY", envvar="GATEWAY_KEY", help="Client key for --url. [env: GATEWAY_KEY]")
@click.option("--model", metavar="MODEL", default=MODEL, show_default=True, help="Name that leads to the built-in upstream.")
@click.option("--scenario", "scenarios", multiple=True, type=click.Choice(OFFERED), metavar="NAME",
              help=f"Which load, may be repeated: {', '.join(OFFERED)}. Default: the quick ones.")
@click.option("--seconds", type=click.FloatRange(0.1, 600), metavar="S", help="How long each scenario runs.")
@click.option("--direct", is_flag=True, help="Measure the built-in upstream without a gateway.")
@json_option
def command(url: str | None, key: str | None, model: str, scenarios: tuple[str, ...], seconds: float | None, direct: bool,
            as_json: bool) -> None:
    """Load-test a gateway against the built-in scripted upstream: rates, percentiles, histograms.

    TTFT is the time to the first token, CPU what the gateway used for an answer. Without --url a private gateway with one
    provider is started beside it. Every answer is checked; exits with 1 when one
    was not whole. Upstream, gateway and load share this machine: numbers are for comparing on the same machine.
    """
    chosen = scenarios or USUAL
    with steps(chosen, as_json) as step:
        if url or direct:
            try:
                found = [Measured(run_bench(None if direct else url, key, model, [name], seconds, progress=step(name))[0])
                         for name in chosen]
            except OSError as error:
                raise click.ClickException(f"nothing answers at {url}: {error.strerror or error}") from error
        else:
            with private_gateway() as gateway:
                found = [measured(gateway, name, seconds, step(name)) for name in chosen]
    tell(found, as_json)
    if not all(one.row.valid for one in found):
        raise SystemExit(1)


def measured(gateway: Private, name: str, seconds: float | None, progress: Progress | None = None) -> Measured:
    before = cpu_s(gateway.pid)
    row = run_bench(gateway.url, KEY, MODEL, [name], seconds, progress=progress)[0]
    after = cpu_s(gateway.pid)
    if before is None or after is None or not row.answered:
        return Measured(row)
    return Measured(row, (after - before) * 1e6 / row.answered)


@contextmanager
def steps(chosen: Sequence[str], quiet: bool) -> Iterator[Callable[[str], Progress | None]]:
    """A bar for each scenario as it begins, gone at the end; on a terminal only, and never in what is printed."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda name: None
        return
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars

    with Bars(TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"),
              TextColumn("{task.fields[answers]:,} answers[red]{task.fields[faults]}"), console=console, transient=True) as bars:
        whole = bars.add_task("all", total=len(chosen), answers=0, faults="")
        done: list[int] = []

        def step(name: str) -> Progress:
            task = bars.add_task(SCENARIOS[name].about, total=1.0, answers=0, faults="")
            before = len(done)
            done.append(0)

            def tell(share: float, answers: int, faults: int) -> None:
                done[before] = answers
                said = f", {faults:,} not whole" if faults else ""
                bars.update(task, completed=share, answers=answers, faults=said)
                bars.update(whole, completed=before + share, answers=sum(done))
            return tell
        yield step


@contextmanager
def private_gateway() -> Iterator[Private]:
    """The upstream and a gateway in front of it, on free ports; both end with the block."""
    with tempfile.TemporaryDirectory() as folder, started(["gateway.mock.bench_upstream"]) as (address, _):
        config = Path(folder) / "gateway.toml"
        config.write_text(CONFIG.format(key=KEY, address=address, model=MODEL), encoding="utf-8")
        with started(["gateway", "serve", "--config", str(config), "--port", "0"]) as (url, pid):
            yield Private(url, pid)


@contextmanager
def started(module: list[str]) -> Iterator[tuple[str, int]]:
    """A module run as a program; the last word of its first line is its address."""
    process = subprocess.Popen([sys.executable, "-m", *module], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise click.ClickException(f"{module[0]} did not start")
        yield line.split()[-1], process.pid
    finally:
        process.terminate()
        try:
            process.wait(START_S)
        except subprocess.TimeoutExpired:
            process.kill()
        process.wait()


def cpu_s(pid: int) -> float | None:
    """User and system seconds of a process; Linux only."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def tell(found: list[Measured], as_json: bool) -> None:
    from gateway.cli import show

    if as_json:
        show.as_json([{**msgspec.structs.asdict(one.row), "valid": one.row.valid, "cpu_us": one.cpu_us} for one in found])
        return
    columns = ("scenario", "answers/s", "chunks/s", "p50 ms", "p99 ms", "TTFT p50", "p99", "CPU µs", "faults")
    show.table(columns, [line(one) for one in found], right=columns[1:-1])
    for one in found:
        if shape := drawn(one.row.histogram):
            click.echo(f"\n{one.row.scenario}, {SCENARIOS[one.row.scenario].about}: time to the end of an answer")
            click.echo("\n".join(shape))
    for one in found:
        if one.row.first_error:
            click.echo(f"{one.row.scenario}: {one.row.first_error}", err=True)


def line(one: Measured) -> tuple[str, ...]:
    row = one.row
    faults = {"errors": row.errors, "truncated": row.truncated, "unfinished": row.unfinished}
    return (row.scenario, f"{row.per_s:,.0f}", f"{row.chunks_per_s:,.0f}" if row.chunks_per_s else "",
            f"{row.latency_p50_ms:.2f}", f"{row.latency_p99_ms:.2f}", f"{row.ttft_p50_ms:.2f}", f"{row.ttft_p99_ms:.2f}",
            "" if one.cpu_us is None else f"{one.cpu_us:,.0f}", ", ".join(f"{n} {what}" for what, n in faults.items() if n) or "none")
