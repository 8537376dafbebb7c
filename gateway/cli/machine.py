"""What does the gateway find on this machine? Python, its loop, open files, extras, the store's disk, the clock."""
import email.utils
import http.client
import importlib.util
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from gateway.cli import loop
from gateway.config.places import MEMORY, SQLITE
from gateway.core.errors import GatewayError
from gateway.store.reading import Read

State = Literal["ok", "warn", "fail"]

FILES_WANTED: Final = 8192               # a stream holds two sockets: 4,000 streams
FREE_LEAST: Final = 100 << 20            # bytes on the store's disk; a busy day's records are some hundred megabytes
FREE_WANTED: Final = 1 << 30
CLOCK_S: Final = 5.0
CLOCK_OFF_S: Final = 30.0                # Date headers are good to a second or two
CLOCK_BAD_S: Final = 300.0               # AWS refuses signatures that are five minutes off, Google tokens of the future

# extra -> a module of it; the setting that needs one which is missing is a problem of the configuration
EXTRAS: Final = {"images": "PIL", "mcp": "mcp", "otel": "opentelemetry.sdk", "postgres": "asyncpg", "redis": "valkey",
                 "secrets": "cryptography", "socks": "aiohttp_socks", "sso": "joserfc", "tokens": "toktok", "watch": "watchfiles"}


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at. ``do``: what would help; "" = nothing needs to."""
    state: State
    about: str
    says: str
    do: str = ""


def machine() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("ok", "python", version) if sys.version_info >= (3, 11) else \
        Finding("fail", "python", version, "install Python 3.11 or newer")
    if loop.factory() is not None:
        yield Finding("ok", "event loop", "uvloop")
    elif importlib.util.find_spec("uvloop"):
        yield Finding("ok", "event loop", "asyncio, as GATEWAY_LOOP says")
    else:
        yield Finding("warn", "event loop", "asyncio; uvloop is not installed and would be faster", "pip install uvloop")
    yield open_files()
    yield extras()


def open_files() -> Finding:
    try:
        import resource
    except ImportError:                   # there is none for Windows
        return Finding("ok", "open files", "no limit known")
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft in (resource.RLIM_INFINITY, -1) or soft >= FILES_WANTED:
        return Finding("ok", "open files", "no limit" if soft < 0 else str(soft))
    return Finding("warn", "open files", f"{soft}, enough for about {soft // 2} streams at once",
                   f"ulimit -n {FILES_WANTED}, or LimitNOFILE={FILES_WANTED} in the unit of systemd")


def extras() -> Finding:
    there = [name for name, module in EXTRAS.items() if installed(module)]
    missing = [name for name in EXTRAS if name not in there]
    return Finding("ok", "extras", f"{', '.join(there) or 'none'}" + (f"; without {', '.join(missing)}" if missing else ""))


def installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def store(address: str, offline: bool) -> Iterator[Finding]:
    """Can records be kept where the configuration says, and is there room?"""
    if address == MEMORY:
        yield Finding("warn", "store", "memory: records, keys and cooldowns are gone with the process",
                      'write url = "sqlite:gateway.db" below [store]')
        return
    if not address.startswith(SQLITE):
        yield Finding("ok", "store", "a server, not tried") if offline else readable(address, "the server answers")
        return
    path = Path(address.removeprefix(SQLITE))
    place = next(each for each in (path.parent, *path.parent.parents) if each.exists())
    if not os.access(place, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        yield Finding("fail", "store", f"{path} cannot be written by this user", f"make {place} writable for who runs the gateway")
        return
    if path.exists():
        yield readable(address, f"{path}, {path.stat().st_size / 1e6:.1f} MB")
    else:
        yield Finding("ok", "store", f"{path} will be made")
    free = shutil.disk_usage(place).free
    if free < FREE_WANTED:
        yield Finding("fail" if free < FREE_LEAST else "warn", "disk", f"{free / 1e6:,.0f} MB are free where the store is",
                      "make room, or lower store.retention_days")
    else:
        yield Finding("ok", "disk", f"{free / 1e9:,.1f} GB are free where the store is")


def readable(address: str, says: str) -> Finding:
    from gateway.store.lookup import looking

    async def look() -> None:
        read: Read
        async with looking(address) as read:
            await read("SELECT id FROM requests LIMIT 1", ())

    try:
        loop.run(look())
    except GatewayError as error:
        old = "gateway migrate" in error.message
        do = "the next start does it too" if old else "look after the server or the file; gateway restore puts a backup back"
        return Finding("warn" if old else "fail", "store", error.message, do)
    return Finding("ok", "store", says)


def clock(base_url: str) -> Finding:
    """This machine's clock beside that of a provider, as its Date header tells; no key is sent."""
    parts = urlsplit(base_url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    try:
        asked = kind(parts.hostname or "", parts.port, timeout=CLOCK_S)
        try:
            asked.request("HEAD", "/")
            said = asked.getresponse().getheader("Date", "")
        finally:
            asked.close()
        off_s = time.time() - email.utils.parsedate_to_datetime(said or "").timestamp()
    except (OSError, ValueError, TypeError, http.client.HTTPException):
        return Finding("ok", "clock", "nobody told the time to compare with")
    if abs(off_s) < CLOCK_OFF_S:
        return Finding("ok", "clock", "right")
    says = f"{abs(off_s):.0f} s {'ahead' if off_s > 0 else 'behind'}"
    return Finding("fail" if abs(off_s) >= CLOCK_BAD_S else "warn", "clock", says,
                   "let a time service set it (systemd-timesyncd, chrony): signatures, tokens and budgets go by it")
