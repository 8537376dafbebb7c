"""Where does the configuration come from, and what does it compile to? Read, decode, check, build: all problems at once."""
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from gateway.config import check, clients, combos, filters, master, payload, places, races, upstreams, zero
from gateway.config.decode import Decoder
from gateway.config.problems import ConfigError as ConfigError
from gateway.config.problems import Problems
from gateway.config.schema import Config
from gateway.config.snapshot import Snapshot

SIZE_LIMIT: Final = 32 << 20
SYSTEM: Final = Path("/etc/gateway/gateway.toml")


def find(path: Path | None, env: Mapping[str, str], *, here: Path | None = None, system: Path = SYSTEM) -> Path | None:
    """The file to load (contract 1); None = zero-config mode. One that is named must exist, the others may."""
    if path is not None:
        return path
    if named := env.get("GATEWAY_CONFIG"):
        return Path(named)
    base = env.get("XDG_CONFIG_HOME") or (f"{env['HOME']}/.config" if env.get("HOME") else "")
    places = [(here or Path()) / "gateway.toml", *([Path(base) / "gateway" / "gateway.toml"] if base else []), system]
    return next((place for place in places if place.is_file()), None)


def load(path: Path | None, env: Mapping[str, str], *, host: str | None = None, port: int | None = None,
         workers: int | str | None = None, here: Path | None = None, system: Path = SYSTEM, wall: float | None = None) -> Snapshot:
    """The compiled configuration. ``host``, ``port`` and ``workers`` override [server]. Raises ConfigError with every problem."""
    problems = Problems()
    decoder = Decoder(env, problems)
    source = find(path, env, here=here, system=system)
    config = zero.config(env) if source is None else decoder.config(read(source))
    override = {name: value for name, value in (("host", host), ("port", port), ("workers", workers))
                if value is not None}
    if override:
        config = msgspec.structs.replace(config, server=msgspec.structs.replace(config.server, **override))
    return compile(config, env, problems, source=source, loose=decoder.secrets, wall=time.time() if wall is None else wall)


def loads(text: str, env: Mapping[str, str] | None = None, *, wall: float = 0.0) -> Snapshot:
    """The same from a text."""
    problems = Problems()
    decoder = Decoder(env or {}, problems)
    config = decoder.config(parse(text, "gateway.toml"))
    return compile(config, env or {}, problems, source=None, loose=decoder.secrets, wall=wall)


def read(path: Path) -> dict[str, Any]:
    """Raises ConfigError: unreadable, too large, not UTF-8, not TOML (with the line)."""
    try:
        with path.open("rb") as file:
            data = file.read(SIZE_LIMIT + 1)
    except OSError as e:
        raise ConfigError([(str(path), f"cannot be read: {(e.strerror or 'not readable').lower()}")]) from None
    if len(data) > SIZE_LIMIT:
        raise ConfigError([(str(path), f"is larger than {SIZE_LIMIT} bytes")])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line = data.count(b"\n", 0, e.start) + 1
        raise ConfigError([(str(path), f"is not UTF-8 text (line {line})")]) from None
    return parse(text, str(path))


def parse(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        last = text.rstrip().count("\n") + 1
        what = str(e).replace("(at end of document)", f"(at line {last}, the last)")
        raise ConfigError([(name, f"is not valid TOML: {what}")]) from None
    except RecursionError:
        raise ConfigError([(name, "is not valid TOML: nested too deeply")]) from None


def compile(config: Config, env: Mapping[str, str], problems: Problems, *, source: Path | None, loose: list[str],
            wall: float) -> Snapshot:
    """Check what the fields mean together and build what runs."""
    check.server(config, problems)
    check.extras(config, problems)
    check.conduct(config, problems)
    check.guards(config, problems)
    check.observers(config, problems)
    races.check(config, problems)
    check.admin(config, problems)
    keys, groups = clients.client_keys(config, problems, wall), clients.groups(config, problems)
    paths = {order: f"providers[{order}]" for order in range(len(config.providers))}
    providers = tuple(upstreams.build(table, paths[order], order, env, problems, timeouts=config.timeouts,
                                      routing=config.routing) for order, table in enumerate(config.providers))
    providers = tuple(msgspec.structs.replace(provider, hidden=check.hidden(provider, loose)) for provider in providers)
    check.upstreams(providers, paths, problems)
    plans = combos.plans(config, providers, problems)
    rules = payload.rules(config, providers, problems)
    if not providers and not problems.has("providers"):
        problems.warn("providers", "none is configured; add one below [[providers]]")
    packs = filters.load(config, source, problems)
    store = places.store_address(config.store.url, env, problems)
    state = places.state_address(config.state.url.reveal(), problems)
    master_keys = master.master_keys(config, env, problems)
    if problems.found:
        raise ConfigError(problems.found)
    return Snapshot(server=config.server, keys=keys, groups=groups, overall=clients.overall(config),
                    keys_required=config.auth.required, providers=providers, combos=plans, routing=config.routing, rules=rules,
                    stream=config.stream, timeouts=config.timeouts, limits=config.limits, cache=config.cache, log=config.log,
                    compression=config.compression, filters=packs, context=config.context, thinking=config.thinking,
                    guardrails=config.guardrails,
                    images=config.images, fusion=config.fusion, jobs=config.jobs, ollama=config.ollama, admin=config.admin,
                    metrics=config.metrics, otel=config.otel, webhooks=config.webhooks, config=config,
                    store=store, state=state, state_prefix=config.state.prefix,
                    retention_days=config.store.retention_days, master_keys=master_keys,
                    warnings=tuple(problems.warnings), secrets=check.secrets(config, providers, loose),
                    source=source, loaded_at=wall)
