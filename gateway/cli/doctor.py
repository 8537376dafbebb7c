"""``gateway doctor``: what usually goes wrong on a machine, and is it so here?"""
import asyncio
import importlib.util
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

import click
import msgspec

from gateway.cli import loop
from gateway.cli.source import BAD_CONFIG, config_option, json_option
from gateway.config.load import load
from gateway.config.problems import ConfigError
from gateway.config.snapshot import Snapshot
from gateway.providers.registry import Provider

State = Literal["ok", "warn", "fail"]

CONNECT_S: Final = 5.0
AT_ONCE: Final = 16
FILES_WANTED: Final = 8192               # a stream holds two sockets: 4,000 streams
COLOURS: Final = {"ok": "green", "warn": "yellow", "fail": "red"}


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at."""
    state: State
    about: str
    says: str


@click.command(epilog="""\b
Examples:
  gateway doctor
  gateway doctor --config gateway.toml --json""")
@config_option
@json_option
@click.option("--offline", is_flag=True, help="Do not connect to the providers' addresses.")
def command(config: Path | None, as_json: bool, offline: bool) -> None:
    """Check this machine and this configuration for what usually goes wrong.

    Connects to each provider's address, but sends no request and no key. Exits with 2 when something fails.
    """
    from gateway.cli import show

    findings = [*machine(), *configuration(config, offline)]
    if as_json:
        show.as_json(findings)
    else:
        for finding in findings:
            click.echo(f"{click.style(f'{finding.state:4}', fg=COLOURS[finding.state])}  {finding.about}: {finding.says}")
    if any(finding.state == "fail" for finding in findings):
        raise SystemExit(BAD_CONFIG)


def machine() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("ok" if sys.version_info >= (3, 11) else "fail", "python", version)
    if loop.factory() is not None:
        yield Finding("ok", "event loop", "uvloop")
    elif importlib.util.find_spec("uvloop"):
        yield Finding("ok", "event loop", "asyncio, as GATEWAY_LOOP says")
    else:
        yield Finding("warn", "event loop", "asyncio; uvloop is not installed and would be faster")
    yield open_files()


def open_files() -> Finding:
    try:
        import resource
    except ImportError:                   # there is none for Windows
        return Finding("ok", "open files", "no limit known")
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft in (resource.RLIM_INFINITY, -1) or soft >= FILES_WANTED:
        return Finding("ok", "open files", "no limit" if soft < 0 else str(soft))
    return Finding("warn", "open files", f"{soft}, enough for about {soft // 2} streams at once; `ulimit -n {FILES_WANTED}`")


def configuration(path: Path | None, offline: bool) -> Iterator[Finding]:
    try:
        snapshot = load(path, os.environ)
    except ConfigError as error:
        for where, message in error.problems:
            yield Finding("fail", f"configuration {where}".rstrip(), message)
        return
    yield Finding("ok", "configuration", str(snapshot.source or "none; provider keys are taken from the environment"))
    for where, message in snapshot.warnings:
        yield Finding("warn", f"configuration {where}".rstrip(), message)
    yield address(snapshot)
    for provider in snapshot.providers:
        if not provider.models:
            yield Finding("warn", f"provider {provider.id}", "has no models")
    if not offline:
        yield from loop.run(reach(snapshot.providers))


def address(snapshot: Snapshot) -> Finding:
    """Is the port free, or does something answer there already?"""
    host, port = snapshot.server.host, snapshot.server.port
    about = f"address {host}:{port}"
    try:
        family, kind, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
    except OSError as error:
        return Finding("warn", about, f"in use or not to be had ({error.strerror or error}); a gateway may run there already")
    return Finding("ok", about, "free")


async def reach(providers: Sequence[Provider]) -> list[Finding]:
    """A TCP connection to each provider's address, some at once."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(provider: Provider) -> Finding:
        async with gate:
            return await connect(provider)

    return list(await asyncio.gather(*(one(provider) for provider in providers if "demo" not in provider.flags)))


async def connect(provider: Provider) -> Finding:
    about = f"provider {provider.id}"
    if provider.proxy:
        return Finding("ok", about, "behind a proxy, not tried")
    parts = urlsplit(provider.base_url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), CONNECT_S)
    except TimeoutError:
        return Finding("fail", about, f"{host}:{port} does not answer within {CONNECT_S:.0f} s")
    except OSError as error:
        return Finding("fail", about, f"{host}:{port} cannot be reached: {error.strerror or error}")
    writer.close()
    return Finding("ok", about, f"{host}:{port} accepts connections")
