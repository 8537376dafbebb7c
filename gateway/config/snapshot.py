"""What does the running gateway go by? One configuration, compiled and frozen; a reload makes a new one and swaps it whole."""
from pathlib import Path

import msgspec

from gateway.config.payload import Rule
from gateway.config.problems import Problem
from gateway.config.schema import (
    Admin,
    Config,
    Images,
    Jobs,
    Limits,
    Log,
    Ollama,
    Routing,
    Server,
    Stream,
    Timeouts,
)
from gateway.core.keys import GroupRow
from gateway.core.secret import Secret
from gateway.policy.budget import Scope
from gateway.policy.keys import ClientKey
from gateway.providers.registry import Provider
from gateway.routing.combos import Plan

Signature = tuple[int, int, int]


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Tables as they were written (with defaults), providers and keys compiled. ``source`` is None in zero-config mode."""
    server: Server = Server()
    keys: tuple[ClientKey, ...] = ()
    groups: tuple[GroupRow, ...] = ()
    overall: Scope | None = None             # the budget of everybody together
    keys_required: bool = False
    providers: tuple[Provider, ...] = ()
    combos: tuple[Plan, ...] = ()
    routing: Routing = Routing()
    rules: tuple[Rule, ...] = ()
    stream: Stream = Stream()
    timeouts: Timeouts = Timeouts()
    limits: Limits = Limits()
    log: Log = Log()
    images: Images = Images()
    jobs: Jobs = Jobs()
    ollama: Ollama = Ollama()
    admin: Admin = Admin()
    config: Config = Config()                # everything as it was written
    store: str = "memory:"                   # or "sqlite:" with an absolute path
    master_keys: tuple[Secret, ...] = ()     # 64 hexadecimal digits each; the first seals
    warnings: tuple[Problem, ...] = ()
    secrets: tuple[str, ...] = ()            # everything that must never be shown, for redaction
    source: Path | None = None
    loaded_at: float = 0.0                   # epoch seconds

    def __repr__(self) -> str:
        return f"Snapshot({len(self.providers)} providers, {len(self.keys)} keys)"


def watch_signature(path: Path | None) -> Signature | None:
    """Changes when the file does, also when an editor or a symlink swap replaces it; None without a readable file."""
    if path is None:
        return None
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
