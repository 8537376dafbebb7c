"""How does one [[providers]] table become a Provider? Preset and user's fields merged, everything checked, problems named."""
import ipaddress
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from gateway.config.problems import Problems, nearest
from gateway.config.schema import ModelTable, ProviderTable, Routing, Table, Timeouts
from gateway.core import timeouts as core
from gateway.core.secret import Secret
from gateway.providers.auth import DEFAULT_AUTH
from gateway.providers.profiles import Profile, facts, profiles
from gateway.providers.quirks import QUIRKS, combine
from gateway.providers.registry import Account, Ceiling, Model, Price, Provider
from gateway.upstream import proxies

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_KEY = re.compile(r"[\x21-\x7e]+")
# What the transport says itself; a second word would break the framing or the connection.
_OWN_HEADERS: Final = frozenset({"host", "content-length", "transfer-encoding", "connection", "content-type", "accept-encoding",
                                 "cookie", "te", "upgrade", "expect"})
_OPERATIONS: Final = ("/chat/completions", "/completions", "/responses", "/messages", "/embeddings")
_PRIVATE_NAMES: Final = (".local", ".localhost", ".internal", ".lan", ".home.arpa")


def build(table: ProviderTable, path: str, order: int, env: Mapping[str, str], problems: Problems, *,
          timeouts: Timeouts, routing: Routing) -> Provider:
    """The compiled provider; after problems its facts are only good for further checks."""
    preset = _preset(table, path, problems)
    wire = table.wire or (preset.wire if preset else "openai-chat")
    base_url = _base_url(table, preset, path, problems)
    if wire == "ollama":
        base_url = base_url.removesuffix("/api")          # its operations are /api/…; people write the address either way
    loopback = near(base_url)
    auth = table.auth or (preset.auth if preset else "") or DEFAULT_AUTH[wire]
    quirks = _quirks(table, preset, path, problems)
    effect = combine(quirks)
    limits = Ceiling(**{name: getattr(table.limits, name) for name in Ceiling.__struct_fields__})
    if not limits.rpm and routing.rpm_default:
        limits = msgspec.structs.replace(limits, rpm=routing.rpm_default)
    return Provider(
        id=_id(table, path, problems), name=preset.name if preset else table.id, wire=wire, base_url=base_url, auth=auth,
        accounts=_accounts(table, preset, auth, loopback, path, env, problems), models=_models(table, preset, path, problems),
        headers=(preset.headers if preset else {}) | _headers(table, path, problems), proxy=_proxy(table, path, problems),
        flags=effect.flags | (frozenset({"demo"}) if preset and preset.in_process else frozenset()),
        drop_params=effect.drop, rename_params=effect.rename, limits=limits, timeouts=_timeouts(table, timeouts),
        loopback=loopback, order=order)


def _preset(table: ProviderTable, path: str, problems: Problems) -> Profile | None:
    if not table.preset:
        return None
    preset = profiles().get(table.preset)
    if preset is None:
        problems.add(f"{path}.preset", f"{table.preset!r} is not in the catalogue; known: {', '.join(profiles())}"
                     + nearest(table.preset, profiles()))
    return preset


def _id(table: ProviderTable, path: str, problems: Problems) -> str:
    name = table.id or table.preset
    if not name:
        problems.add(f"{path}.id", 'is missing; write a short name such as id = "a", or a preset')
    elif not _ID.fullmatch(name):
        problems.add(f"{path}.id", "may hold letters, digits, '.', '_' and '-' only, at most 64; a '/' ends the provider's "
                     "name in provider/model")
    return name


def _base_url(table: ProviderTable, preset: Profile | None, path: str, problems: Problems) -> str:
    url, where = table.base_url.strip(), f"{path}.base_url"
    if not url:
        if preset is None and not problems.has(f"{path}.preset"):
            problems.add(where, 'is missing; write base_url = "https://host/v1", or a preset')
        return preset.base_url if preset else ""
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
    if parts.username or parts.password:
        return "must not hold a user or password; write the key in api_keys"
    if parts.query or parts.fragment:
        return "must not hold a query or a fragment; write the address only"
    if "{" in url:
        return "holds a placeholder in braces; write the whole address"
    return ""


def near(url: str) -> bool:
    """Is this host on this machine or in a private network? Such an upstream rests for seconds, not minutes."""
    try:
        host = (urlsplit(url).hostname or "").rstrip(".").lower()
    except ValueError:
        return False
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(_PRIVATE_NAMES))
    return address.is_loopback or address.is_private or address.is_link_local


def _accounts(table: ProviderTable, preset: Profile | None, auth: str, loopback: bool, path: str, env: Mapping[str, str],
              problems: Problems) -> tuple[Account, ...]:
    """One per key, or one without a key for servers that want none."""
    where = f"{path}.api_keys"
    keys = table.api_keys
    if auth == "none":
        if keys:
            problems.warn(where, 'are not used with auth = "none"')
        return (Account(1, Secret("")),)
    if not keys and preset:
        keys = tuple(Secret(env[name]) for name in preset.env if env.get(name))[:1]
    if not keys and not problems.has(where):
        if loopback:
            return (Account(1, Secret("")),)
        variable = f', such as ["${{env:{preset.env[0]}}}"]' if preset and preset.env else ""
        problems.add(where, f'is missing; write the keys{variable}, or auth = "none"')
    accounts: list[Account] = []
    for index, key in enumerate(keys):
        text = key.reveal().strip()
        if not text:
            problems.add(f"{where}[{index}]", "is empty")
        elif not _KEY.fullmatch(text):
            problems.add(f"{where}[{index}]", "must be printable ASCII without spaces")
        elif any(account.key.reveal() == text for account in accounts):
            problems.warn(f"{where}[{index}]", "stands there twice; it is one account")
        else:
            accounts.append(Account(len(accounts) + 1, Secret(text), label=f"key{index + 1}"))
    return tuple(accounts)


def _models(table: ProviderTable, preset: Profile | None, path: str, problems: Problems) -> dict[str, Model]:
    """The user's list with the catalogue's facts below it; without a list, the catalogue's."""
    known = facts(preset) if preset else {}
    where = f"{path}.models"
    if not table.models:
        if not known and not problems.has(where) and not problems.has(f"{path}.preset"):
            problems.add(where, 'is missing; name at least one, such as models = ["name"]')
        return {id: _model(values) for id, values in known.items()}
    models: dict[str, Model] = {}
    for index, model in enumerate(table.models):
        if model.id in models:
            problems.add(f"{where}[{index}]", f"{model.id!r} stands there twice")
        elif model.id.strip() != model.id or re.search(r"[\x00-\x1f\x7f]", model.id):
            problems.add(f"{where}[{index}]", "must not begin or end with a space, or hold control characters")
        else:
            models[model.id] = _model(known.get(model.id, {}) | _written(model))
    return models


def _model(values: dict[str, Any]) -> Model:
    return Model(**(values | {"aliases": tuple(values.get("aliases", ()))}))


def _written(model: ModelTable) -> dict[str, Any]:
    """Only what the user wrote."""
    values = {name: value for name in ModelTable.__struct_fields__ if (value := getattr(model, name)) not in (None, ())}
    if model.price is not None:
        values["price"] = Price(input=model.price.input, output=model.price.output, cached=model.price.cached)
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


def _proxy(table: ProviderTable, path: str, problems: Problems) -> str:
    url = table.proxy.reveal().strip()
    if not url:
        return ""
    if problem := proxies.problem(url):
        problems.add(f"{path}.proxy", problem)
    return url


def _quirks(table: ProviderTable, preset: Profile | None, path: str, problems: Problems) -> list[str]:
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
