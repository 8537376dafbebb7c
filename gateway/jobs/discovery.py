"""Whom and what is there that nobody wrote down? Models of providers that are to be asked, and servers on this machine.

What was found is kept and put into every configuration that is compiled from now on; requests never wait for it. Only providers
with ``models = ["*"]`` are asked, and local ones without a list: lists of metered providers are not read unasked.
"""
import asyncio
import logging
from itertools import zip_longest
from typing import Final

import msgspec

from gateway.config import upstreams
from gateway.config.problems import Problems
from gateway.config.schema import ModelTable, ProviderTable, Routing, Timeouts
from gateway.config.snapshot import Snapshot
from gateway.core.errors import GatewayError
from gateway.jobs.listing import Means, listed
from gateway.providers.registry import Model, Provider

log = logging.getLogger("gateway.discovery")

ASK_S: Final = 15.0
LOCAL_S: Final = 0.3
AT_ONCE: Final = 8
# Catalogue entries of servers that people run on their own machine, on their usual ports.
LOCAL: Final = ("ollama", "llamacpp", "vllm", "lmstudio")
Key = tuple[str, str]


class Discovery:
    """What was found so far."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._found: dict[Key, tuple[Model, ...]] = {}
        self._local: tuple[Provider, ...] = ()
        self.written: Snapshot | None = None         # the last configuration, as it was written

    def apply(self, snapshot: Snapshot) -> Snapshot:
        """The configuration with what was found."""
        self.written = snapshot
        providers = [self._filled(provider) for provider in snapshot.providers]
        if snapshot.source is None:
            names = {provider.id for provider in providers}
            last = max((provider.order for provider in providers), default=0)
            providers += [msgspec.structs.replace(local, order=last + n) for n, local in enumerate(self._local, 1)
                          if local.id not in names]
        if all(new is old for new, old in zip_longest(providers, snapshot.providers)):
            return snapshot
        return msgspec.structs.replace(snapshot, providers=tuple(providers))

    def _filled(self, provider: Provider) -> Provider:
        found = self._found.get(_key(provider)) if provider.discover else None
        if not found:
            return provider
        return msgspec.structs.replace(provider, models={model.id: model for model in found} | provider.models)

    async def look(self, own_port: int = 0) -> bool:
        """Ask everybody who is to be asked; is anything new? Never raises."""
        snapshot = self.written
        if snapshot is None:
            return False
        room = asyncio.Semaphore(AT_ONCE)
        before = dict(self._found), self._local
        await asyncio.gather(*(self._ask(provider, room) for provider in snapshot.providers if provider.discover))
        if snapshot.source is None:
            self._local = await self.nearby(own_port)
        return before != (self._found, self._local)

    async def _ask(self, provider: Provider, room: asyncio.Semaphore) -> None:
        if not provider.accounts:
            return
        try:
            async with room, asyncio.timeout(ASK_S):
                self._found[_key(provider)] = await listed(provider, provider.accounts[0], self._means)
        except (GatewayError, TimeoutError) as error:
            log.warning("%s: its models are not known: %s", provider.id, getattr(error, "message", f"no answer within {ASK_S:g} s"))

    async def nearby(self, own_port: int) -> tuple[Provider, ...]:
        """Servers that answer on their usual ports within LOCAL_S."""
        tables = [provider for name in LOCAL if (provider := local(name)) is not None
                  and not provider.base_url.endswith(f":{own_port}/v1")]
        found = await asyncio.gather(*(self._knock(provider) for provider in tables))
        for provider in filter(None, found):
            if provider.id not in {known.id for known in self._local}:
                log.info("found %s on this machine with %d models", provider.name, len(provider.models))
        return tuple(provider for provider in found if provider is not None)

    async def _knock(self, provider: Provider) -> Provider | None:
        try:
            async with asyncio.timeout(LOCAL_S):
                models = await listed(provider, provider.accounts[0], self._means)
        except (GatewayError, TimeoutError):
            return None
        return msgspec.structs.replace(provider, models={model.id: model for model in models}) if models else None


def local(name: str) -> Provider | None:
    """A catalogue entry as somebody would write it who knows no more than that it runs."""
    problems = Problems()
    table = ProviderTable(id=name, preset=name, models=(ModelTable(id=upstreams.EVERY),))
    provider = upstreams.build(table, "providers[0]", 0, {}, problems, timeouts=Timeouts(), routing=Routing())
    return None if problems.found else provider


def _key(provider: Provider) -> Key:
    return provider.id, provider.base_url
