"""Which accounts does a provider have? Keys, an OAuth sign-in, AWS or Google credentials: compiled, and every problem named."""
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from gateway.config.problems import Problems, nearest
from gateway.config.schema import KeyTable, ProviderTable
from gateway.core.secret import Secret
from gateway.providers import gcp, sigv4
from gateway.providers.auth import MADE
from gateway.providers.oauth import OAuth
from gateway.providers.registry import Account, Grant
from gateway.upstream import metadata, proxies

_KEY: Final = re.compile(r"[\x21-\x7e]+")
_OAUTH: Final = ("token_url", "client_id", "client_secret", "refresh_token", "scope")
_FILE_BYTES: Final = 65_536


def auth_of(table: ProviderTable, default: str) -> str:
    """How the credentials travel. Bedrock takes keys of its own as well: where some are written, nothing is signed.
    https://docs.aws.amazon.com/bedrock/latest/userguide/api-keys.html"""
    if table.auth is None and default == "sigv4" and table.api_keys and not table.credentials:
        return "bearer"
    return table.auth or default


def accounts(table: ProviderTable, usual: tuple[str, ...], auth: str, base_url: str, loopback: bool, path: str,
             env: Mapping[str, str], problems: Problems) -> tuple[Account, ...]:
    """One per key or sign-in, or one without a key for servers that want none. ``usual``: the provider's key variables."""
    _unused(table, auth, path, problems)
    if auth in MADE:
        return _granted(table, auth, base_url, path, env, problems)
    where = f"{path}.api_keys"
    keys = table.api_keys
    if auth == "none":
        if keys:
            problems.warn(where, 'are not used with auth = "none"')
        return (Account(1, Secret("")),)
    if not keys:
        keys = tuple(KeyTable(key=Secret(env[name])) for name in usual if env.get(name))[:1]
    if not keys and not problems.has(where):
        if loopback:
            return (Account(1, Secret("")),)
        variable = f', such as ["${{env:{usual[0]}}}"]' if usual else ""
        problems.add(where, f'is missing; write the keys{variable}, or auth = "none"')
    found: list[Account] = []
    for index, key in enumerate(keys):
        _add(key, index, f"{where}[{index}]", found, problems)
    return tuple(found)


def _add(key: KeyTable, index: int, where: str, found: list[Account], problems: Problems) -> None:
    text = key.key.reveal().strip()
    label = key.label.strip() or f"key{index + 1}"
    if not text:
        if not problems.has(where):
            problems.add(where, "is empty")
    elif not _KEY.fullmatch(text):
        problems.add(where, "must be printable ASCII without spaces")
    elif any(account.key.reveal() == text for account in found):
        problems.warn(where, "stands there twice; it is one account")
    elif any(account.label == label for account in found):
        problems.add(f"{where}.label", f"{label!r} is the label of another key already")
    else:
        proxy = key.proxy.reveal().strip()
        if proxy and (wrong := proxies.problem(proxy)):
            problems.add(f"{where}.proxy", wrong)
        found.append(Account(len(found) + 1, Secret(text), label=label, priority=key.priority, models=key.models, proxy=proxy,
                             tags=frozenset(key.tags)))


def _unused(table: ProviderTable, auth: str, path: str, problems: Problems) -> None:
    """What is written and has no effect is a mistake."""
    if table.oauth and auth != "oauth":
        problems.add(f"{path}.oauth", 'is only used with auth = "oauth"')
    if table.credentials and auth not in ("sigv4", "gcp"):
        problems.add(f"{path}.credentials", 'is only used with auth = "sigv4" or "gcp"')
    if table.api_keys and auth in MADE:
        problems.add(f"{path}.api_keys", f'are not used with auth = "{auth}"')


# ---------------------------------------------------------------- credentials that are made for each call
def _granted(table: ProviderTable, auth: str, base_url: str, path: str, env: Mapping[str, str],
             problems: Problems) -> tuple[Account, ...]:
    where = f"{path}.oauth" if auth == "oauth" else f"{path}.credentials"
    try:
        grant = _READ[auth](table, base_url, env)
        if metadata.held(urlsplit(getattr(grant, "token_url", "")).hostname or ""):
            raise ValueError(f"token_url {metadata.WORDS}")
    except ValueError as error:
        if not problems.has(where):
            problems.add(where, str(error))
        return ()
    return (Account(1, Secret(""), label=auth, grant=grant),)


def _oauth(table: ProviderTable, base_url: str, env: Mapping[str, str]) -> Grant:
    said = table.oauth
    if not said:
        raise ValueError("is missing; write oauth = {token_url, client_id, client_secret, refresh_token}")
    for name, value in said.items():
        if name not in _OAUTH:
            raise ValueError(f"has an unknown key {name!r}{nearest(name, _OAUTH)}")
        if not isinstance(value, str):
            raise ValueError(f"{name} must be text in quotes")
    values = {name: str(said.get(name, "")).strip() for name in _OAUTH}
    missing = [name for name in ("token_url", "client_id") if not values[name]]
    if not values["refresh_token"] and not values["client_secret"]:
        missing.append("refresh_token")
    if missing:
        raise ValueError(f"needs {' and '.join(missing)}")
    parts = urlsplit(values["token_url"])
    if not parts.hostname or parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise ValueError("token_url must begin with https://")
    return OAuth(values["token_url"], values["client_id"], Secret(values["client_secret"]), Secret(values["refresh_token"]),
                 values["scope"])


def _sigv4(table: ProviderTable, base_url: str, env: Mapping[str, str]) -> Grant:
    region = table.vars.get("region") or sigv4.region_in(base_url) or env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION") or ""
    said = table.credentials
    if isinstance(said, dict):
        return sigv4.of(_texts(said), region)
    if isinstance(said, str) and said.strip():
        return sigv4.read(said, region)
    usual = {name.lower(): env[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN") if env.get(name)}
    if not usual:
        raise ValueError('is missing; write credentials = "${file:/path/of/credentials}", or set AWS_ACCESS_KEY_ID and '
                         "AWS_SECRET_ACCESS_KEY")
    return sigv4.of(usual, region)


def project_of(table: ProviderTable, env: Mapping[str, str]) -> str:
    """The project that Google credentials belong to, for addresses that want one; empty where nobody says."""
    try:
        return gcp.project_in(_key_file(table, env)) if table.credentials or table.auth == "gcp" else ""
    except ValueError:
        return ""


def _gcp(table: ProviderTable, base_url: str, env: Mapping[str, str]) -> Grant:
    text = _key_file(table, env)
    if not text.strip():
        raise ValueError('is missing; write credentials = "${file:/path/of/key.json}", or set GOOGLE_APPLICATION_CREDENTIALS')
    return gcp.read(text)


def _key_file(table: ProviderTable, env: Mapping[str, str]) -> str:
    said = table.credentials
    text = json.dumps(_texts(said)) if isinstance(said, dict) else said if isinstance(said, str) else ""
    if not text.strip() and (name := env.get("GOOGLE_APPLICATION_CREDENTIALS", "")):
        try:
            with Path(name).open(encoding="utf-8") as file:
                text = file.read(_FILE_BYTES)
        except (OSError, UnicodeDecodeError):
            raise ValueError("cannot be read from the file that GOOGLE_APPLICATION_CREDENTIALS names") from None
    return text


def _texts(said: Mapping[str, Any]) -> dict[str, str]:
    for name, value in said.items():
        if not isinstance(value, str):
            raise ValueError(f"{name} must be text in quotes")
    return {name.lower(): value for name, value in said.items()}


_READ: Final[dict[str, Callable[[ProviderTable, str, Mapping[str, str]], Grant]]] = {
    "oauth": _oauth, "sigv4": _sigv4, "gcp": _gcp,
}
