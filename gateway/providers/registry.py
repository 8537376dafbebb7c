"""Who is upstream? The compiled facts of a provider, its accounts and its models: what routing and the pipeline look at."""
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from gateway.core.secret import Secret
from gateway.core.timeouts import Timeouts
from gateway.prices import Price as Price
from gateway.providers.gcp import ServiceAccount
from gateway.providers.oauth import OAuth
from gateway.providers.sigv4 import AwsKeys

Grant = OAuth | ServiceAccount | AwsKeys
Kind = Literal["chat", "embedding", "image", "speech", "transcription", "rerank", "moderation"]


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
    thinks: str = ""                         # how it is told how much to think: budget, effort, adaptive; empty = unknown
    refuses: frozenset[str] = frozenset()    # body fields that this model answers with 400
    flags: frozenset[str] = frozenset()      # named quirks of the wire, besides those of the provider


class Account(msgspec.Struct, frozen=True):
    """One key: rotated, cooled and counted alone. ``ordinal`` is 1-based in its provider; an empty key sends nothing.

    Where ``grant`` stands, credentials are made for each call (upstream.signed). Accounts of a lower ``priority`` are asked first.
    """
    ordinal: int
    key: Secret
    label: str = ""
    grant: Grant | None = None
    priority: int = 0
    models: tuple[str, ...] = ()             # patterns of the models that it may be used for; none = all
    proxy: str = ""                          # instead of the provider's
    tags: frozenset[str] = frozenset()       # what a request may ask for

    def __repr__(self) -> str:
        return f"Account({self.ordinal}, {self.label!r})"    # a proxy's address may hold a password

    def serves(self, model: str) -> bool:
        return not self.models or any(fnmatchcase(model, pattern) for pattern in self.models)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Its credentials in plain text, for redaction only."""
        return (self.key.reveal(),) if self.grant is None else self.grant.secrets


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
    transport: str = "network"               # or "aiohttp": which client asks it
    flags: frozenset[str] = frozenset()      # named quirks of the wire, and "demo"
    drop_params: frozenset[str] = frozenset()
    rename_params: dict[str, str] = {}
    limits: Ceiling = Ceiling()
    timeouts: Timeouts = Timeouts()
    preset: str = ""                         # the catalogue entry that it started from
    query: str = ""                          # what every address ends in, such as api-version=…
    models_url: str = ""                     # where it lists its models; empty = base_url + /models, or unknown to the catalogue
    id_prefix: str = ""                      # what its names of models begin with, and ours may leave out
    discover: bool = False                   # its own list says which models it has (jobs.discovery)
    loopback: bool = False                   # its host is this machine or a private network
    order: int = 0
    hidden: tuple[str, ...] = ()             # secrets besides its accounts': in headers, of proxies

    def __repr__(self) -> str:
        return f"Provider({self.id!r})"

    def upstream_name(self, model: Model) -> str:
        """What it calls the model itself."""
        return model.id if model.id.startswith(self.id_prefix) else self.id_prefix + model.id

    @property
    def keys(self) -> tuple[str, ...]:
        """Its credentials in plain text, for redaction only."""
        return (*(text for account in self.accounts for text in account.secrets), *self.hidden)
