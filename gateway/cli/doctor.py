"""``gateway doctor``: what usually goes wrong on a machine, and is it so here?"""
import asyncio
import os
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import click

from gateway.cli import loop, machine
from gateway.cli.machine import Finding
from gateway.cli.source import BAD_CONFIG, config_option, json_option
from gateway.config.load import load
from gateway.config.problems import ConfigError
from gateway.config.snapshot import Snapshot
from gateway.providers.registry import Provider

CONNECT_S: Final = 5.0
AT_ONCE: Final = 16
REACH: Final = "is base_url right, does its name resolve, does a firewall stand between? `proxy` goes round it"
COLOURS: Final = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command(epilog="""\b
Examples:
  gateway doctor
  gateway doctor --config gateway.toml --json""")
@config_option
@json_option
@click.option("--offline", is_flag=True, help="Do not connect to the providers' addresses.")
def command(config: Path | None, as_json: bool, offline: bool) -> None:
    """Check this machine and this configuration for what usually goes wrong.

    Connects to each provider's address, and asks one of them for the time; sends no key. Exits with 2 when something fails.
    """
    from gateway.cli import show

    findings = [*machine.machine(), *configuration(config, offline)]
    if as_json:
        show.as_json(findings)
    else:
        for finding in findings:
            click.echo(f"{click.style(f'{finding.state:4}', fg=COLOURS[finding.state])}  {finding.about}: {finding.says}")
            if finding.do:
                click.echo(f"      → {finding.do}")
    if any(finding.state == "fail" for finding in findings):
        raise SystemExit(BAD_CONFIG)


def configuration(path: Path | None, offline: bool) -> Iterator[Finding]:
    try:
        snapshot = load(path, os.environ)
    except ConfigError as error:
        for where, message in error.problems:
            yield Finding("fail", f"configuration {where}".rstrip(), message, "correct it; `gateway check` tells all of it again")
        return
    yield Finding("ok", "configuration", str(snapshot.source or "none; provider keys are taken from the environment"))
    for where, message in snapshot.warnings:
        yield Finding("warn", f"configuration {where}".rstrip(), message)
    yield address(snapshot)
    yield from machine.store(snapshot.store, offline)
    for provider in snapshot.providers:
        if not provider.models:
            yield Finding("warn", f"provider {provider.id}", "has no models", 'list some, or write models = ["*"]')
    if not offline:
        found = loop.run(reach(snapshot.providers))
        yield from found
        yield from timed(snapshot.providers, {finding.about for finding in found if finding.state == "ok"})


def timed(providers: Sequence[Provider], reached: set[str]) -> Iterator[Finding]:
    """The clock, by the first provider that is somewhere else and can be reached."""
    told = next((provider for provider in providers if f"provider {provider.id}" in reached
                 and not (provider.proxy or provider.loopback)), None)
    if told is not None:
        yield machine.clock(told.base_url)


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
        return Finding("warn", about, f"in use or not to be had ({error.strerror or error}); a gateway may run there already",
                       "gateway serve --port with another one, or stop what runs there")
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
        return Finding("fail", about, f"{host}:{port} does not answer within {CONNECT_S:.0f} s", REACH)
    except OSError as error:
        return Finding("fail", about, f"{host}:{port} cannot be reached: {error.strerror or error}", REACH)
    writer.close()
    return Finding("ok", about, f"{host}:{port} accepts connections")
