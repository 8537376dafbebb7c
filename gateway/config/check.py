"""What do the fields of a configuration mean together, and what is wrong with that? Rules that cross tables, and warnings."""
import importlib.util
import ipaddress
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from gateway.config.problems import Problems
from gateway.config.problems import render as render
from gateway.config.schema import Config, Webhook
from gateway.config.schema_guards import WebhookGuard
from gateway.core.redact import worth_hiding
from gateway.policy import passwords
from gateway.policy.guardrails import injection
from gateway.providers.registry import Provider
from gateway.upstream import images, metadata

ADMIN_KEY: Final = re.compile(r"[\x21-\x7e]{16,}")
_VIRTUAL: Final = ("auto", "fusion", "combo")          # names that mean something else (contract 3)


def loopback(host: str) -> bool:
    """Can only this machine reach a socket that listens there?"""
    host = host.strip().strip("[]").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def server(config: Config, problems: Problems) -> None:
    table = config.server
    if not table.host.strip():
        problems.add("server.host", 'is empty; write "127.0.0.1", or "0.0.0.0" for all addresses')
    elif not loopback(table.host) and not config.auth.keys and not config.auth.required and not problems.has("auth"):
        problems.add("server.host", f"{table.host} is not loopback, and no client key is configured: anybody could spend your "
                     'keys; add one below [[auth.keys]], write required = true below [auth] and make keys with `gateway keys create`, '
                     'or write host = "127.0.0.1"')
    for index, origin in enumerate(table.cors_allow_origins):
        if origin != "*" and not _origin(origin):
            problems.add(f"server.cors_allow_origins[{index}]", 'must be "*" or an origin such as "https://app.example"')
        elif origin == "*" and not config.auth.keys and not config.auth.required:
            problems.warn(f"server.cors_allow_origins[{index}]", "without client keys any web page that is open on this machine may "
                          "spend your keys; name the origins, or add a client key")
    if bool(table.tls_cert) != bool(table.tls_key):
        missing = "tls_key" if table.tls_cert else "tls_cert"
        problems.add(f"server.{missing}", "is missing; HTTPS needs tls_cert and tls_key")
    for name in ("tls_cert", "tls_key"):
        file = getattr(table, name)
        if file and not (Path(file).is_file() and os.access(file, os.R_OK)):
            problems.add(f"server.{name}", f"cannot read {file}")
    if len(table.unix.encode()) > 100:
        problems.add("server.unix", "must be at most 100 bytes long")


def extras(config: Config, problems: Problems) -> None:
    """A setting whose package is missing must not be silently without effect."""
    if config.otel.endpoint and not _installed("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"):
        problems.add("otel.endpoint", "needs a package: pip install 'gateway[otel]'; or leave it out")
    if config.mcp.enabled and not _installed("mcp.server"):
        problems.add("mcp.enabled", "needs a package: pip install 'gateway[mcp]'; or leave it out")
    if config.images.max_side and not images.available():
        problems.add("images.max_side", f"needs a package: {images.EXTRA}; or leave it out")


def conduct(config: Config, problems: Problems) -> None:
    """What is done to requests on the operator's account."""
    table = config.thinking
    if table.mode == "cap" and not (table.max_tokens or table.max_effort):
        problems.add("thinking.mode", "caps nothing; write max_tokens or max_effort as well")


def guards(config: Config, problems: Problems) -> None:
    """What the guards are given by the operator."""
    table = config.guardrails
    for place, pattern in enumerate(table.injection.patterns):
        if why := injection.wrong(pattern):
            problems.add(f"guardrails.injection.patterns[{place}]", why)
    if len(table.injection.patterns) > injection.MAX_PATTERNS:
        problems.add("guardrails.injection.patterns", f"are more than {injection.MAX_PATTERNS}")
    if table.webhook.url.reveal():
        _webhook("guardrails.webhook", table.webhook, problems)


def _installed(*modules: str) -> bool:
    try:
        return all(importlib.util.find_spec(name) is not None for name in modules)
    except ImportError:                              # of a package above it
        return False


def observers(config: Config, problems: Problems) -> None:
    """Whom the gateway tells of itself."""
    if config.otel.endpoint and not _address(config.otel.endpoint):
        problems.add("otel.endpoint", 'must be an address such as "http://127.0.0.1:4318"')
    elif metadata.held(urlsplit(config.otel.endpoint).hostname or ""):
        problems.add("otel.endpoint", metadata.WORDS)
    if (key := config.metrics.key.reveal()) and not ADMIN_KEY.fullmatch(key):
        problems.add("metrics.key", "must be at least 16 printable ASCII characters without spaces")
    for index, hook in enumerate(config.webhooks):
        _webhook(f"webhooks[{index}]", hook, problems)


def _webhook(path: str, hook: Webhook | WebhookGuard, problems: Problems) -> None:
    from gateway.upstream.reach import Refused, check_url

    url = hook.url.reveal()
    if not _address(url):
        problems.add(f"{path}.url", 'must be an address such as "https://hooks.example/gateway"')
    elif metadata.held(urlsplit(url).hostname or ""):
        problems.add(f"{path}.url", metadata.WORDS)
    elif not hook.allow_private:
        try:
            check_url(url)
        except Refused as refused:
            problems.add(f"{path}.url", f"{refused.message}; write allow_private = true if it is yours")
    if not hook.secret.reveal():
        problems.warn(f"{path}.secret", "is empty: who listens there cannot tell our notices from anybody's")


def _address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def admin(config: Config, problems: Problems) -> None:
    given = config.admin.password_hash.reveal()
    if given and not passwords.well_formed(given):
        problems.add("admin.password_hash", "is no hash of a password; `gateway admin-password` makes one")
    key = config.admin.key.reveal()
    if key and not ADMIN_KEY.fullmatch(key):
        problems.add("admin.key", "must be at least 16 printable ASCII characters without spaces, since it opens everything")


def _origin(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.netloc) and not parts.path and not parts.query
    except ValueError:
        return False


def upstreams(providers: tuple[Provider, ...], paths: Mapping[int, str], problems: Problems) -> None:
    """Ids must be unique; names that mean two things are warned about. ``paths``: order of a provider -> its path."""
    seen: dict[str, str] = {}
    for provider in providers:
        path = paths[provider.order]
        if provider.id and provider.id in seen:
            problems.add(f"{path}.id", f"{provider.id!r} is the id of {seen[provider.id]} already")
        seen.setdefault(provider.id, path)
        if provider.id in _VIRTUAL:
            problems.warn(f"{path}.id", f"{provider.id!r} also means a virtual model; its models are {provider.id}/MODEL first")
    _clashes(providers, paths, problems)


def _clashes(providers: tuple[Provider, ...], paths: Mapping[int, str], problems: Problems) -> None:
    models = {id: provider for provider in reversed(providers) for id in provider.models}
    pairs = {f"{provider.id}/{id}" for provider in providers for id in provider.models}
    aliases: dict[str, str] = {}
    for provider in providers:
        for index, (id, model) in enumerate(provider.models.items()):
            path = f"{paths[provider.order]}.models[{index}]"
            if id in pairs:
                problems.warn(path, f"{id!r} is also PROVIDER/MODEL of another provider, which wins")
            elif id.partition(":")[0] in _VIRTUAL or id.partition("/")[0] in _VIRTUAL:
                problems.warn(path, f"{id!r} hides the virtual model of that name; {provider.id}/{id} always means this one")
            for alias in model.aliases:
                if alias in models:
                    problems.warn(path, f"the alias {alias!r} is a model of {models[alias].id}, which wins")
                elif aliases.setdefault(alias, id) != id:
                    problems.warn(path, f"the alias {alias!r} already means {aliases[alias]!r}, which wins")


def _password(address: str) -> str:
    """The one inside of an address."""
    try:
        return unquote(urlsplit(address).password or "")
    except ValueError:
        return ""


def passphrase(url: str) -> str:
    """The password in an address."""
    try:
        return unquote(urlsplit(url).password or "")
    except ValueError:
        return ""


_SECRET: Final = re.compile(r"auth|key|token|secret|password|cookie", re.I)      # names of headers
_RANDOM: Final = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z])(?!\S*[/:])\S{12,}")      # no address, no word


def hidden(provider: Provider, loose: Collection[str]) -> tuple[str, ...]:
    """What it is sent besides keys, and must not be repeated: headers that are called like secrets, or came from the environment or
    a file and look like some; passwords of proxies, as they are written and as they are meant."""
    found = {name: None for address in (provider.proxy, *(account.proxy for account in provider.accounts)) if address
             for name in (urlsplit(address).password or "", passphrase(address))}
    for name, value in provider.headers.items():
        word = value.rpartition(" ")[2]
        if _SECRET.search(name) or value in loose and _RANDOM.fullmatch(word):
            found[word] = None
    return tuple(word for word in found if worth_hiding(word))


def secrets(config: Config, providers: tuple[Provider, ...], loose: list[str]) -> tuple[str, ...]:
    """Every value that must never be shown."""
    found: dict[str, None] = dict.fromkeys(key.key.reveal() for key in config.auth.keys)
    found |= dict.fromkeys((config.admin.key.reveal(), config.admin.password_hash.reveal()))
    found |= dict.fromkeys((config.metrics.key.reveal(), *config.otel.headers.values()))
    found |= dict.fromkeys((passphrase(config.state.url.reveal()),))
    for hook in config.webhooks:
        found |= dict.fromkeys((hook.url.reveal(), hook.secret.reveal()))
    found |= dict.fromkeys((config.guardrails.webhook.url.reveal(), config.guardrails.webhook.secret.reveal()))
    if known := _password(config.store.url):
        found[known] = None
    for provider in providers:
        found |= dict.fromkeys(provider.keys)
    found |= dict.fromkeys(loose)
    return tuple(secret for secret in found if secret)


