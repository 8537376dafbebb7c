"""What is done while nobody asks? Models are looked for, tokens refreshed before they expire, accounts tried one by one.

One task; none of it holds up a start, a request or a stop.
"""
import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Final

from gateway.config.schema import Jobs as Settings
from gateway.core.errors import GatewayError
from gateway.jobs.discovery import Discovery
from gateway.jobs.listing import Means, address, listed
from gateway.pipeline.ground import Ground
from gateway.providers.registry import Account, Provider
from gateway.providers.sigv4 import AwsKeys
from gateway.routing.catalog import Candidate
from gateway.upstream.signed import holder

log = logging.getLogger("gateway.jobs")

TOKENS_S: Final = 60.0
FOLLOW_S: Final = 2.0
EXPIRE_S: Final = 900.0
PROBE_S: Final = 20.0                                # for one answer
# Failures of an account that a list of models shows as well as an answer would.
TOLD: Final = frozenset({"auth", "out_of_credits", "suspended", "transport", "timeout"})


class Jobs:
    """For one gateway. ``ground`` is the current one, ``rebuild`` puts what was found into a new one."""

    def __init__(self, discovery: Discovery, means: Means, ground: Callable[[], Ground], rebuild: Callable[[], None],
                 follow: Callable[[], object], expire: Callable[[], object]) -> None:
        self._discovery = discovery
        self._means = means
        self._ground = ground
        self._rebuild = rebuild
        self._follow = follow                        # looks for what other processes changed
        self._expire = expire                        # lets go of records that are too old
        self.leads = True                            # of several workers one does what need be done once only
        self._tasks: list[asyncio.Task[None]] = []
        self._next = 0

    def start(self, own_port: int) -> None:
        settings = self._ground().snapshot.jobs
        self._tasks = [asyncio.create_task(self._look(settings, own_port)), asyncio.create_task(self._every(TOKENS_S, self.tokens)),
                       asyncio.create_task(self._every(FOLLOW_S, self._follow))]
        if self.leads:
            self._tasks.append(asyncio.create_task(self._every(EXPIRE_S, self._expire)))
        if settings.probe_s and self.leads:
            self._tasks.append(asyncio.create_task(self._every(settings.probe_s, self.probe)))

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _look(self, settings: Settings, own_port: int) -> None:
        while True:
            try:
                if await self._discovery.look(own_port):
                    self._rebuild()
            except Exception:
                log.exception("looking for models failed")
            if not settings.discovery_s:
                return
            await asyncio.sleep(settings.discovery_s)

    async def _every(self, period_s: float, job: Callable[[], object]) -> None:
        while True:
            await asyncio.sleep(period_s)
            try:
                done = job()
                if asyncio.iscoroutine(done):
                    await done
            except Exception:
                log.exception("a background job failed")

    async def tokens(self) -> None:
        """Tokens in use that will soon expire."""
        tokens = self._means.tokens
        for provider, account in accounts(self._ground()):
            if account.grant is None or isinstance(account.grant, AwsKeys):
                continue
            whose = holder(provider, account)
            if tokens.used(whose) and tokens.due(whose, TOKENS_S):
                try:
                    await tokens.get(whose)
                except GatewayError:
                    pass                             # told in the log by whoever refreshed

    async def probe(self) -> None:
        """One account, the next in turn: a pause between two calls, whatever their number."""
        ground = self._ground()
        everybody = [pair for pair in accounts(ground) if address(*pair)]
        if not everybody:
            return
        self._next = (self._next + 1) % len(everybody)
        provider, account = everybody[self._next]
        candidate = candidate_of(ground, provider, account)
        if candidate is None:
            return
        now, clock = self._means.clock.now(), self._means.clock
        try:
            async with asyncio.timeout(PROBE_S):
                await listed(provider, account, self._means)
        except TimeoutError:
            ground.health.failed(candidate, GatewayError("timeout", "no answer to a probe"), clock.now(), clock.wall())
        except GatewayError as error:
            if error.kind in TOLD:
                ground.health.failed(candidate, error, clock.now(), clock.wall())
        else:
            blocked = ground.health.blocked(candidate, now)
            if blocked is not None and blocked[1] == "auth":
                ground.health.cleared(candidate)


def accounts(ground: Ground) -> Iterator[tuple[Provider, Account]]:
    for provider in ground.catalog.providers.values():
        if "demo" not in provider.flags:
            for account in provider.accounts:
                yield provider, account


def candidate_of(ground: Ground, provider: Provider, account: Account) -> Candidate | None:
    return next((candidate for target in ground.catalog.targets if target.provider is provider
                 for candidate in target.candidates if candidate.account is account), None)
