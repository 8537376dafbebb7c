"""Who is upstream? The compiled facts of a provider, its accounts and its models: what routing and the pipeline look at."""
from typing import Literal

import msgspec

from gateway.core.secret import Secret
from gateway.core.timeouts import Timeouts

Kind = Literal["chat", "embedding", "image", "speech", "transcription", "rerank", "moderation"]


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """US dollars per million tokens."""
    input: float = 0.0
    output: float = 0.0
    cached: float | None = None


class Model(msgspec.Struct, frozen=True):
    """One model of a provider; None = unknown, which routing treats as "may well"."""
    id: str
    kind: Kind = "chat"
    context: int | None = None
    max_output: int | None = None
    tools: bool | None = None
    vision: bool | None = None
    reasoning: bool | None = None
    completions: bool = False
    dimensions: int | None = None
    price: Price | None = None
    aliases: tuple[str, ...] = ()


class Account(msgspec.Struct, frozen=True):
    """One key: rotated, cooled and counted alone. ``ordinal`` is 1-based in its provider; an empty key sends nothing."""
    ordinal: int
    key: Secret
    label: str = ""


class Ceiling(msgspec.Struct, frozen=True, kw_only=True):
    """What one account of a provider may be asked, as the operator wrote it; 0 = none."""
    rpm: int = 0
    rpd: int = 0
    tpm: int = 0
    tpd: int = 0
    concurrency: int = 0


class Provider(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One upstream. Identity is the object's: it keys maps as cheaply as an int."""
    id: str
    name: str
    wire: str = "openai-chat"
    base_url: str = ""                       # no trailing slash
    auth: str = "bearer"
    accounts: tuple[Account, ...] = ()
    models: dict[str, Model] = {}
    headers: dict[str, str] = {}
    proxy: str = ""
    flags: frozenset[str] = frozenset()      # named quirks of the wire, and "demo"
    drop_params: frozenset[str] = frozenset()
    rename_params: dict[str, str] = {}
    limits: Ceiling = Ceiling()
    timeouts: Timeouts = Timeouts()
    loopback: bool = False                   # its host is this machine or a private network
    order: int = 0

    def __repr__(self) -> str:
        return f"Provider({self.id!r})"

    @property
    def keys(self) -> tuple[str, ...]:
        """Its credentials in plain text, for redaction only."""
        return tuple(account.key.reveal() for account in self.accounts)
