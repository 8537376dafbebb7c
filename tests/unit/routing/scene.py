"""Providers, catalogues and failures for routing tests, in one line each."""
from gateway.core.call import Attempt
from gateway.core.errors import GatewayError
from gateway.core.request import Request
from gateway.core.secret import Secret
from gateway.providers.registry import Account, Model, Provider
from gateway.routing.catalog import Catalog
from gateway.routing.health import Health
from gateway.routing.resolve import resolve
from gateway.routing.walk import Walk

NOW = 1000.0
WALL = 1_800_000_000.0           # 2027-01-15 08:00 UTC


def provider(id, *models, keys=1, order=0, **facts):
    """``models`` are ids or Model structs."""
    found = [m if isinstance(m, Model) else Model(m) for m in models]
    facts.setdefault("base_url", f"https://{id}.example/v1")
    return Provider(id=id, name=id, order=order, models={m.id: m for m in found}, **facts,
                    accounts=tuple(Account(n, Secret(f"sk-{id}-{n}"), f"key{n}") for n in range(1, keys + 1)))


def catalog(*providers, **settings):
    return Catalog(providers, **settings)


def request(**facts):
    facts = {"wire": "openai-chat", "raw": b"{}", "body": None, "model": "m", "stream": True, **facts}
    return Request(**facts)


def walk(catalog, name="m", health=None, tokens=10, **facts):
    return Walk(resolve(name, catalog), request(**facts), health or Health(), tokens, NOW)


def error(kind, retry_s=None, **facts):
    return GatewayError(kind, facts.pop("message", f"it was {kind}"), retry_after_s=retry_s, **facts)


def hop(label, key, kind, started=0.0, ended=0.1, **facts):
    """A failed attempt; ``kind`` may be a ready error."""
    failure = kind if isinstance(kind, GatewayError) else error(kind)
    provider, _, model = label.partition("/")
    return Attempt(label=label, provider=provider, model=model, key=key, started=started, ended=ended, error=failure, **facts)


def labels(targets):
    return [t.label for t in targets]


def drain(walk, kind, health=None, now=NOW):
    """Ask everybody, each fails with ``kind``; who was asked, in order."""
    asked = []
    while (candidate := walk.next(now)) is not None:
        asked.append(f"{candidate.target.label}#{candidate.account.ordinal}")
        walk.failed(candidate, error(kind))
    return asked
