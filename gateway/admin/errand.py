"""What does a handler of the operator's side know, whoever sent it: the API, or a tool? Who asks and what, already checked."""
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gateway.admin.office import Office
from gateway.pipeline.ground import Ground
from gateway.policy.keys import ClientKey, Principal
from gateway.policy.scopes import SCOPES

OPERATOR: Final = "admin"
EVERY: Final = frozenset(SCOPES)


class Ask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of queries and bodies."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Base of answers."""


class Nothing(Ask, frozen=True):
    """No parameters."""


class Done(Facts, frozen=True):
    """It was done."""
    ok: bool = True


def operator() -> Principal:
    """A principal without limits."""
    return Principal(ClientKey(name=OPERATOR, sha256=""))


class Errand:
    """One thing to do. ``who``: as the audit log names the caller; ``principal``: by whose limits and budgets models are asked
    (None: the operator's, who has none); ``scopes``: those of MCP that the caller may hand on."""

    __slots__ = ("body", "ground", "id", "office", "params", "principal", "query", "scopes", "who")

    def __init__(self, office: Office, who: str, name: str, *, params: Mapping[str, str] | None = None, query: Any = None,
                 body: Any = None, principal: Principal | None = None, scopes: frozenset[str] = EVERY) -> None:
        self.office = office
        self.ground: Ground = office.ground
        self.who = who
        self.id = name
        self.params = params or {}
        self.query = query
        self.body = body
        self.principal = principal
        self.scopes = scopes

    def note(self, action: str, subject: str = "", detail: str = "", ok: bool = True) -> None:
        self.office.note(self.who, action, subject, detail, ok)
