"""What does the running gateway go by? One configuration, compiled and frozen; a reload makes a new one and swaps it whole."""
from pathlib import Path

import msgspec

from gateway.compress.filters import Filter
from gateway.config import schema
from gateway.config.payload import Rule
from gateway.config.problems import Problem
from gateway.core.keys import GroupRow
from gateway.core.secret import Secret
from gateway.policy.budget import Scope
from gateway.policy.keys import ClientKey
from gateway.providers.registry import Provider
from gateway.routing.combos import Plan


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Tables as they were written (with defaults), providers and keys compiled. ``source`` is None in zero-config mode."""
    server: schema.Server = schema.Server()
    keys: tuple[ClientKey, ...] = ()
    groups: tuple[GroupRow, ...] = ()
    overall: Scope | None = None             # the budget of everybody together
    keys_required: bool = False
    providers: tuple[Provider, ...] = ()
    combos: tuple[Plan, ...] = ()
    routing: schema.Routing = schema.Routing()
    rules: tuple[Rule, ...] = ()
    stream: schema.Stream = schema.Stream()
    timeouts: schema.Timeouts = schema.Timeouts()
    limits: schema.Limits = schema.Limits()
    cache: schema.Cache = schema.Cache()
    compression: schema.Compression = schema.Compression()
    context: schema.Context = schema.Context()
    thinking: schema.Thinking = schema.Thinking()
    guardrails: schema.Guardrails = schema.Guardrails()
    filters: tuple[Filter, ...] = ()         # of the output of commands, where compression is on
    log: schema.Log = schema.Log()
    images: schema.Images = schema.Images()
    fusion: schema.Fusion = schema.Fusion()
    jobs: schema.Jobs = schema.Jobs()
    ollama: schema.Ollama = schema.Ollama()
    admin: schema.Admin = schema.Admin()
    metrics: schema.Metrics = schema.Metrics()
    otel: schema.Otel = schema.Otel()
    webhooks: tuple[schema.Webhook, ...] = ()
    config: schema.Config = schema.Config()                # everything as it was written
    store: str = "memory:"                   # or "sqlite:" with an absolute path
    state: str = ""                          # where it is shared, with its password; "" = nowhere
    state_prefix: str = "gateway:"
    master_keys: tuple[Secret, ...] = ()     # 64 hexadecimal digits each; the first seals
    retention_days: int = 30
    warnings: tuple[Problem, ...] = ()
    secrets: tuple[str, ...] = ()            # everything that must never be shown, for redaction
    source: Path | None = None
    loaded_at: float = 0.0                   # epoch seconds

    def __repr__(self) -> str:
        return f"Snapshot({len(self.providers)} providers, {len(self.keys)} keys)"
