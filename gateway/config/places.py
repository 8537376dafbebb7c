"""Where does state live? The state directory (contract 1), and the store's address in it."""
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from gateway.config.problems import Problems
from gateway.config.schema import Store

MEMORY: Final = "memory:"
SQLITE: Final = "sqlite:"
STATES: Final = frozenset({"redis", "rediss", "valkey", "valkeys", "unix"})
SERVERS: Final = ("postgresql:", "postgres:")


def state_directory(env: Mapping[str, str]) -> Path | None:
    """Where files of ours may be; None where the environment names no home. systemd may name several: the first is ours.
    https://www.freedesktop.org/software/systemd/man/latest/systemd.exec.html#RuntimeDirectory="""
    if given := env.get("STATE_DIRECTORY", "").partition(":")[0]:
        return Path(given)
    if base := env.get("XDG_STATE_HOME"):
        return Path(base) / "gateway"
    return Path(env["HOME"]) / ".local" / "state" / "gateway" if env.get("HOME") else None


def state_address(url: str, problems: Problems) -> str:
    """Where state is shared; "" = nowhere. What is in the address is not told: it may hold a password."""
    if url == MEMORY:
        return ""
    try:
        parts = urlsplit(url)
        named = parts.scheme in STATES and bool(parts.path if parts.scheme == "unix" else parts.hostname) \
            and (parts.port is None or parts.port > 0)
    except ValueError:
        named = False
    if not named:
        problems.add("state.url", 'is none of "memory:", "redis://host:6379/0" and "valkey://host:6379/0"')
        return ""
    if importlib.util.find_spec("valkey") is None:
        problems.add("state.url", "needs a package: pip install 'gateway[redis]'")
        return ""
    return url


def store_address(url: str, env: Mapping[str, str], problems: Problems) -> str:
    """``memory:``, ``postgresql://…``, or ``sqlite:`` with an absolute path. The default is memory where no file has a
    place."""
    if url.startswith(SERVERS):
        return server_address(url, problems)
    if not url.startswith(SQLITE):
        if url != MEMORY:
            problems.add("store.url", 'is none of "sqlite:FILE", "memory:" and "postgresql://…"')
        return MEMORY
    name = url.removeprefix(SQLITE)
    if not name or name.endswith("/"):
        problems.add("store.url", "names no file; write sqlite:gateway.db")
        return MEMORY
    base = state_directory(env)
    if base is None and not Path(name).is_absolute():
        if url != Store().url:                       # somebody wanted this file
            problems.add("store.url", "needs an absolute path where neither STATE_DIRECTORY, XDG_STATE_HOME nor HOME is set")
        return MEMORY
    return SQLITE + str(((base or Path()) / name).absolute())


def server_address(url: str, problems: Problems) -> str:
    """A database on a server. What is in the address is not told: it holds a password."""
    if importlib.util.find_spec("asyncpg") is None:
        problems.add("store.url", "needs a package: pip install 'gateway[postgres]'")
        return MEMORY
    try:
        parts = urlsplit(url)
        named = bool(parts.path.strip("/")) and (parts.port is None or parts.port > 0) and (parts.hostname or "host=" in parts.query)
    except ValueError:
        named = False
    if not named:
        problems.add("store.url", "is no address of a database; write postgresql://user:password@host:5432/database")
        return MEMORY
    return "postgresql:" + url.partition(":")[2]
