"""How does one [[providers]] table become a Provider? Preset and user's fields merged, everything checked, problems named."""
import ipaddress
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import msgspec

from gateway.config import accounts
from gateway.config.problems import Problems, nearest
from gateway.config.schema import ModelTable, PriceTable, ProviderTable, Routing, Table, Timeouts
from gateway.core import timeouts as core
from gateway.prices import table as prices
from gateway.providers.auth import DEFAULT_AUTH
from gateway.providers.presets import Preset, facts, filled, presets
from gateway.providers.profiles import family
from gateway.providers.quirks import QUIRKS, combine
from gateway.providers.registry import Ceiling, Model, Price, Provider
from gateway.upstream import metadata, proxies

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# What the transport says itself; a second word would break the framing or the connection.
_OWN_HEADERS: Final = frozenset({"host", "content-length", "transfer-encoding", "connection", "content-type", "accept-encoding",
                                 "cookie", "te", "upgrade", "expect"})
EVERY: Final = "*"                                   # as a model: all that the provider lists
_OPERATIONS: Final = ("/chat/completions", "/completions", "/responses", "/messages", "/embeddings")
_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,252}")       # of a placeholder: part of a host, a path or a header
_FROM_ENV = re.compile(r"\$\{env:(\w+)(?::-([^}]*))?\}")
# What every request of a format carries. https://docs.anthropic.com/en/api/versioning
_WIRE_HEADERS: Final = {"anthropic": {"anthropic-version": "2023-06-01"}}
_PRIVATE_NAMES: Final = (".local", ".localhost", ".internal", ".lan", ".home.arpa")


def build(table: ProviderTable, path: str, order: int, env: Mapping[str, str], problems: Problems, *,
          timeouts: Timeouts, routing: Routing) -> Provider:
    """The compiled provider; after problems its facts are only good for further checks."""
    preset = _preset(table, path, problems)
    wire = table.wire or (preset.wire if preset else "openai-chat")
    values = variables(preset, table.vars, env)
    if "project" not in values and (project := accounts.project_of(table, env)):
        values["project"] = project
    base_url = _base_url(table, preset, values, path, problems)
    if wire == "ollama":
        base_url = base_url.removesuffix("/api")          # its operations are /api/…; people write the address either way
    loopback = near(base_url)
    auth = accounts.auth_of(table, (preset.auth if preset else "") or DEFAULT_AUTH[wire])
    quirks = _quirks(table, preset, path, problems)
    effect = combine(quirks)
    limits = Ceiling(**{name: getattr(table.limits, name) for name in Ceiling.__struct_fields__})
    if not limits.rpm and routing.rpm_default:
        limits = msgspec.structs.replace(limits, rpm=routing.rpm_default)
    return Provider(
        id=_id(table, path, problems), name=preset.name if preset else table.id, wire=wire, base_url=base_url, auth=auth,
        accounts=accounts.accounts(table, tuple(preset.env) if preset else (), auth, base_url, loopback, path, env, problems),
        models=_models(table, preset, wire, loopback, path, problems),
        headers=_WIRE_HEADERS.get(wire, {}) | _filled(preset.headers if preset else {}, values) | _headers(table, path, problems),
        proxy=_proxy(table, base_url, path, env, problems),
        transport="aiohttp" if table.transport == "aiohttp" else "network",
        flags=effect.flags | (frozenset({"demo"}) if preset and preset.in_process else frozenset()),
        drop_params=effect.drop, rename_params=effect.rename, limits=limits, timeouts=_timeouts(table, timeouts),
        preset=preset.id if preset else "", query=urlencode(_filled(preset.query if preset else {}, values)),
        models_url=filled(preset.models_url, values) if preset and not table.base_url else "", id_prefix=effect.id_prefix,
        loopback=loopback, order=order,
        discover=discovers(table, preset, loopback) and not (preset and preset.in_process))


def _preset(table: ProviderTable, path: str, problems: Problems) -> Preset | None:
    if not table.preset:
        return None
    found = presets().find(table.preset)
    if found is None:
        problems.add(f"{path}.preset", f"{table.preset!r} is not in the catalogue of {len(presets())} providers, which `gateway "
                     "providers` lists" + nearest(table.preset, presets()))
    return found


def variables(preset: Preset | None, given: Mapping[str, str], env: Mapping[str, str]) -> dict[str, str]:
    """Placeholder -> value: as written, else as the catalogue says, whose ``${env:NAME}`` is looked up. Unknown ones are missing."""
    found = {name: _FROM_ENV.sub(lambda m: env.get(m[1], "").strip() or (m[2] or ""), value)
             for name, value in (preset.vars if preset else {}).items()}
    return {name: value for name, value in (found | dict(given)).items() if value}


def _filled(texts: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    return {name: filled(text, values) for name, text in texts.items()}


def _id(table: ProviderTable, path: str, problems: Problems) -> str:
    name = table.id or table.preset
    if not name:
        problems.add(f"{path}.id", 'is missing; write a short name such as id = "a", or a preset')
    elif not _ID.fullmatch(name):
        problems.add(f"{path}.id", "may hold letters, digits, '.', '_' and '-' only, at most 64; a '/' ends the provider's "
                     "name in provider/model")
    return name


def _base_url(table: ProviderTable, preset: Preset | None, values: Mapping[str, str], path: str, problems: Problems) -> str:
    url, where = table.base_url.strip(), f"{path}.base_url"
    _variables(table, preset, values, path, problems)
    if not url:
        if preset is None and not problems.has(f"{path}.preset"):
            problems.add(where, 'is missing; write base_url = "https://host/v1", or a preset')
        whole = filled(preset.base_url, values) if preset else ""
        if table.vars and metadata.held(_host(whole)):
            problems.add(f"{path}.vars", metadata.WORDS)
        return whole
    url = filled(url, values)
    if problem := wrong_url(url):
        problems.add(where, problem)
        return ""
    url = url.rstrip("/")
    operation = next((end for end in _OPERATIONS if url.endswith(end)), None)
    if operation:
        problems.add(where, f"must end before {operation}, which is appended; write {url.removesuffix(operation)}")
    elif urlsplit(url).path in ("", "/") and table.wire != "ollama":
        problems.warn(where, f"has no path; most servers want the version in it, such as {url}/v1")
    return url


def _variables(table: ProviderTable, preset: Preset | None, values: Mapping[str, str], path: str, problems: Problems) -> None:
    """Each placeholder needs a value, each value a placeholder; what is only in a replaced address is not asked for."""
    texts = [table.base_url or (preset.base_url if preset else "")]
    if preset:
        texts += [*preset.query.values(), *preset.headers.values()]
    holes = {hole for text in texts for hole in re.findall(r"\{(\w+)\}", text)}
    for name in sorted(holes):
        if name not in values and preset is not None and name in preset.vars:
            problems.add(f"{path}.vars.{name}", f'is missing; write vars = {{{name} = "…"}}')
    for name, value in table.vars.items():
        if name not in holes and not (preset and name in preset.vars) and name != "region":
            problems.add(f"{path}.vars.{name}", "is used nowhere" + (f"; known: {', '.join(sorted(holes))}" if holes else ""))
        elif not _VALUE.fullmatch(value):
            problems.add(f"{path}.vars.{name}", "may hold letters, digits, '.', '_', ':' and '-' only")


def wrong_url(url: str) -> str:
    """Why this is no address of an upstream, or nothing."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is no valid URL; write https://host/v1"
    if parts.scheme not in ("http", "https"):
        return f"must begin with http:// or https://{'' if '://' in url else f'; write https://{url[:80]}'}"
    if not host or re.search(r"[\s\\\x00-\x1f]", url):
        return "has no host; write https://host/v1" if not host else "must not hold spaces or control characters"
    if metadata.held(host):
        return metadata.WORDS
    if parts.username or parts.password:
        return "must not hold a user or password; write the key in api_keys"
    if parts.query or parts.fragment:
        return "must not hold a query or a fragment; write the address only"
    if "{" in url:
        return "holds a placeholder in braces; write vars = {name = \"…\"} for it, or the whole address"
    return ""


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").rstrip(".").lower()
    except ValueError:
        return ""


def near(url: str) -> bool:
    """Is this host on this machine or in a private network? Such an upstream rests for seconds, not minutes."""
    host = _host(url)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(_PRIVATE_NAMES))
    return address.is_loopback or address.is_private or address.is_link_local


def _models(table: ProviderTable, preset: Preset | None, wire: str, loopback: bool, path: str,
            problems: Problems) -> dict[str, Model]:
    """The user's list with the catalogue's facts below it; without a list, the catalogue's."""
    def made(values: dict[str, Any]) -> Model:
        return model_of(values, preset.id if preset else "", wire, loopback)
    known = facts(preset) if preset else {}
    where = f"{path}.models"
    if not table.models:
        if not known and not loopback and not problems.has(where) and not problems.has(f"{path}.preset"):
            problems.add(where, 'is missing; name at least one, such as models = ["name"], or write models = ["*"] for all it lists')
        return {id: made(values) for id, values in known.items()}
    models: dict[str, Model] = {id: made(values) for id, values in known.items()} if discovers(table, preset, loopback) else {}
    written: set[str] = set()
    for index, model in enumerate(table.models):
        if model.id == EVERY:
            continue
        if model.id in written:
            problems.add(f"{where}[{index}]", f"{model.id!r} stands there twice")
        elif model.id.strip() != model.id or re.search(r"[\x00-\x1f\x7f]", model.id):
            problems.add(f"{where}[{index}]", "must not begin or end with a space, or hold control characters")
        else:
            written.add(model.id)
            models[model.id] = made(known.get(model.id, {}) | _written(model))
    return models


def discovers(table: ProviderTable, preset: Preset | None, loopback: bool) -> bool:
    """Is it asked which models it has? On demand; a server nearby also where nobody knows any."""
    return any(model.id == EVERY for model in table.models) or not table.models and loopback and not (preset and preset.models)


def model_of(values: dict[str, Any], preset: str, wire: str, loopback: bool) -> Model:
    """A model of whom this is written; below it what its family can do, and the public price of its provider.

    A window is a choice of whoever starts the server, so a server nearby is not said to have its family's.
    """
    line = family(values["id"])
    known: dict[str, Any] = {"tools": line.tools, "vision": line.vision, "reasoning": line.reasoning}
    if not loopback:
        known |= {"context": line.context, "max_output": line.max_output}
    if line.kind != "chat" and values.get("kind", "chat") == "chat":
        known |= {"kind": line.kind, "dimensions": line.dimensions}
        values = {name: value for name, value in values.items() if name != "kind"}
    flags = line.flags | ({"adaptive_thinking"} if wire == "anthropic" and line.thinks == "adaptive" else frozenset())
    price = values.get("price") or (prices.find(preset, values["id"]) if preset else None)
    return Model(**(known | values | {"aliases": tuple(values.get("aliases", ())), "price": price, "thinks": line.thinks,
                                      "refuses": line.refuses, "flags": flags}))


def _written(model: ModelTable) -> dict[str, Any]:
    """Only what the user wrote."""
    values = {name: value for name in ModelTable.__struct_fields__ if (value := getattr(model, name)) not in (None, ())}
    if model.price is not None:
        values["price"] = Price(**{name: getattr(model.price, name) for name in PriceTable.__struct_fields__})
    return values


def _headers(table: ProviderTable, path: str, problems: Problems) -> dict[str, str]:
    for name, value in table.headers.items():
        where = f"{path}.headers.{name}"
        if not _HEADER.fullmatch(name):
            problems.add(where, "is no valid header name")
        elif name.lower() in _OWN_HEADERS:
            problems.add(where, "is set by the gateway; leave it out")
        elif re.search(r"[\x00-\x08\x0a-\x1f\x7f]", value) or not value.isascii():
            problems.add(where, "must be ASCII text in one line")
    return table.headers


def _proxy(table: ProviderTable, base_url: str, path: str, env: Mapping[str, str], problems: Problems) -> str:
    """As written, else as the environment says; one that cannot be used is never gone around."""
    url = proxies.choose(base_url, table.proxy.reveal().strip(), env)
    if url and (problem := proxies.problem(url)):
        problems.add(f"{path}.proxy", problem if table.proxy else f"comes from the environment (ALL_PROXY, HTTPS_PROXY) and {problem}")
    return url


def _quirks(table: ProviderTable, preset: Preset | None, path: str, problems: Problems) -> list[str]:
    names = list(preset.quirks) if preset else []
    for index, name in enumerate(table.quirks):
        if name not in QUIRKS:
            problems.add(f"{path}.quirks[{index}]", f"{name!r} is unknown; known: {', '.join(QUIRKS)}" + nearest(name, QUIRKS))
        elif name not in names:
            names.append(name)
    return names


def _timeouts(table: ProviderTable, general: Timeouts) -> core.Timeouts:
    def pick(name: str, source: Table) -> Any:
        own = getattr(table.timeouts, name)
        return getattr(source, name) if own is None else own
    return core.Timeouts(**{name: pick(name, general) for name in core.Timeouts.__struct_fields__})
