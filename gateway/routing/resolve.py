"""Which targets does a requested name mean? The ladder of contract 3, first match wins; the answer is kept per catalog.

    provider/model · exact model id · alias · virtual (auto) · Claude and Gemini families · 404
"""
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, cast

import msgspec

from gateway.core.errors import GatewayError
from gateway.routing.catalog import Catalog, Index, Target
from gateway.routing.families import family

Form = Literal["target", "model", "alias", "virtual", "family"]

# Names that mean something in the contract and nothing here yet: they must not pretend to be auto.
_LATER: Final = re.compile(r"auto[:/].*|fusion(:.*)?|combo/.*", re.I)
_SHOWN: Final = 200                           # characters of a requested name in a message


class Resolution(msgspec.Struct, frozen=True, eq=False):
    """``targets`` in configured order; ``strategy`` puts them into the order of one request; ``kind`` is how the name was
    understood."""
    targets: tuple[Target, ...]
    requested: str
    kind: Form
    strategy: str = "priority"

    def only(self, targets: Sequence[Target]) -> "Resolution":
        """The same with fewer targets (a client key's allow-list)."""
        return msgspec.structs.replace(self, targets=tuple(targets))


def resolve(name: str, catalog: Catalog, kind: str = "chat") -> Resolution:
    """Raises GatewayError no_model (404), or no_provider (503) where auto has nobody; never calls an upstream."""
    index = catalog.kinds.get(kind)
    if index is None:
        raise _unknown(name, catalog, kind)
    found = index.resolved.get(name)
    if found is None:
        found = _climb(name, catalog, index, kind)
        index.resolved.put(name, found)
    return cast(Resolution, found)


def _climb(name: str, catalog: Catalog, index: Index, kind: str) -> Resolution:
    for step in _STEPS:
        found = step(name, catalog, index)
        if found is not None:
            return found
    if kind == "chat":
        if not name or name.lower() == "auto":
            return _auto(name, catalog, index)
        if _LATER.fullmatch(name):
            raise GatewayError("no_model", f"The model {name[:_SHOWN]!r} is not available in this version; use 'auto', a model's "
                               "name or provider/model.", param="model")
        member = family(name)
        if member is not None:
            return _family(name, member, catalog, index)
    raise _unknown(name, catalog, kind)


def _target(name: str, catalog: Catalog, index: Index) -> Resolution | None:
    found = index.labels.get(name)
    return Resolution(found, name, "target") if found is not None else None


def _model(name: str, catalog: Catalog, index: Index) -> Resolution | None:
    found = index.ids.get(name)
    return Resolution(found, name, "model", catalog.strategy) if found is not None else None


def _alias(name: str, catalog: Catalog, index: Index) -> Resolution | None:
    found = index.aliases.get(name)
    return Resolution(found, name, "alias", catalog.strategy) if found is not None else None


_STEPS: Final[tuple[Callable[[str, Catalog, Index], Resolution | None], ...]] = (_target, _model, _alias)


def _auto(name: str, catalog: Catalog, index: Index, form: Form = "virtual") -> Resolution:
    if not index.auto:
        raise GatewayError("no_provider", "No provider with a chat model is configured.")
    return Resolution(index.auto, name or "auto", form, catalog.strategy)


def _family(name: str, member: tuple[str, str], catalog: Catalog, index: Index) -> Resolution:
    """What the operator mapped the family, its vendor or everything (``default``) to; a mapped name that is gone means auto."""
    mapped = next((catalog.families[key] for key in (*member, "default") if key in catalog.families), "auto")
    for step in _STEPS:
        found = step(mapped, catalog, index)
        if found is not None:
            return Resolution(found.targets, name, "family", found.strategy)
    return _auto(name, catalog, index, "family")


def _unknown(name: str, catalog: Catalog, kind: str) -> GatewayError:
    """Says what is wrong with the name as far as we know: the kind of model, the provider, or nothing at all."""
    shown = name[:_SHOWN]
    other = next((k for k, index in catalog.kinds.items() if k != kind and _known(name, index)), None)
    provider, slash, rest = name.partition("/")
    if other is not None:
        text = f"The model {shown!r} is of kind {other}; this operation needs one of kind {kind}."
    elif slash and provider in catalog.providers:
        text = f"The model {shown!r} does not exist: provider {provider!r} does not list {rest[:_SHOWN]!r}."
    else:
        text = f"The model {shown!r} does not exist; GET /v1/models lists what is served here."
    if not catalog.providers:
        text += " No provider is configured."
    return GatewayError("no_model", text, param="model")


def _known(name: str, index: Any) -> bool:
    return name in index.labels or name in index.ids or name in index.aliases
