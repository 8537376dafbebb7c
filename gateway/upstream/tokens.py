"""Who has a token that is good now? One refresh for all who wait, before it expires; a rotated refresh token is stored before use.

Tokens outlive a reload of the configuration. A grant whose refresh token was revoked stays dead until the operator writes another
one; one that fails again and again is left alone for a while.
"""
import asyncio
import hashlib
import logging
from typing import Final, Protocol

import msgspec

from gateway.core.bounded import LruMap
from gateway.core.clock import Clock
from gateway.core.errors import GatewayError
from gateway.core.timeouts import Timeouts
from gateway.providers.oauth import Grant, Revoked, Token, read
from gateway.upstream.transport import Outgoing, Transport

log = logging.getLogger("gateway.tokens")

RETRIES_S: Final = (0.0, 1.0, 2.0)       # waits before the tries of one refresh
TRY_S: Final = 30.0
FAILURES: Final = 5                      # refreshes in a row that failed: then
REST_S: Final = 1_800.0                  # nobody is asked for so long
ANSWER_BYTES: Final = 65_536
MAX_ACCOUNTS: Final = 4_096
_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json", "User-Agent": "gateway"}
_AGAIN: Final = frozenset({"transport", "timeout", "server_error", "rate_limited", "truncated"})


class Vault(Protocol):
    """Keeps rotated refresh tokens. Both may raise OSError."""

    async def load(self) -> dict[str, str]: ...

    async def keep(self, name: str, value: str) -> None:
        """Durable when it returns."""
        ...

    async def reseal(self) -> int:
        """Seal everything under the current master key; how many. Raises ValueError where one does not open."""
        ...


class Holder(msgspec.Struct, frozen=True):
    """Whose token: a grant of an account, and how its token endpoint is reached."""
    name: str                                    # provider and account
    grant: Grant
    proxy: str = ""

    @property
    def place(self) -> str:
        """Its name in the vault. Another refresh token in the configuration is another place: what was rotated from the old
        one means nothing to it."""
        return f"{self.name} {hashlib.sha256(self.grant.refresh.reveal().encode()).hexdigest()[:16]}"


class _State:
    """One holder's token and its failures."""

    __slots__ = ("token", "good_until", "renew_at", "failures", "rest_until", "revoked", "refresh", "task")

    def __init__(self, refresh: str) -> None:
        self.token = ""
        self.good_until = 0.0
        self.renew_at = 0.0
        self.failures = 0
        self.rest_until = 0.0
        self.revoked: Revoked | None = None
        self.refresh = refresh
        self.task: asyncio.Task[str] | None = None


class Tokens:
    """All tokens of this process."""

    def __init__(self, transport: Transport, clock: Clock, vault: Vault) -> None:
        self._transport = transport
        self._clock = clock
        self._vault = vault
        self._kept: dict[str, str] | None = None
        self._states: LruMap[str, _State] = LruMap(MAX_ACCOUNTS)

    async def get(self, holder: Holder) -> str:
        """A token that is good. Raises Revoked, or what the refresh failed of."""
        state = self._states.get(holder.place) or await self._state(holder)
        now = self._clock.now()
        if state.token and now < state.renew_at:
            return state.token
        usable = state.token and now < state.good_until
        if state.revoked is not None:
            raise state.revoked
        if now < state.rest_until:
            if usable:
                return state.token
            raise GatewayError("auth", "The account's sign-in failed too often; it is left alone for a while.",
                               retry_after_s=state.rest_until - now)
        if state.task is None:
            state.task = asyncio.create_task(self._renew(holder, state))
            state.task.add_done_callback(lambda task: _seen(task, state))
        if usable:
            return state.token                       # good for a little longer: nobody waits for the next one
        return await asyncio.shield(state.task)

    def refused(self, holder: Holder, token: str) -> bool:
        """The upstream did not accept this token. Is another one worth a try?"""
        state = self._states.get(holder.place)
        if state is None or state.revoked is not None:
            return False
        if state.token == token:
            state.token, state.good_until, state.renew_at = "", 0.0, 0.0
        return True

    def used(self, holder: Holder) -> bool:
        """Has somebody asked for its token?"""
        return holder.place in self._states

    def due(self, holder: Holder, within_s: float) -> bool:
        """Will its token be replaced within this time (or is there none)? For the background job."""
        state = self._states.get(holder.place)
        return state is None or state.renew_at <= self._clock.now() + within_s

    async def close(self) -> None:
        for state in self._states.values():
            if state.task is not None:
                state.task.cancel()

    async def _state(self, holder: Holder) -> _State:
        if self._kept is None:
            try:
                kept = await self._vault.load()
            except (OSError, ValueError):
                log.error("rotated tokens cannot be read; those of the configuration are used")
                kept = {}
            self._kept = self._kept or kept
        state = self._states.get(holder.place)
        if state is None:
            state = _State(self._kept.get(holder.place) or holder.grant.refresh.reveal())
            self._states.put(holder.place, state)
        return state

    async def _renew(self, holder: Holder, state: _State) -> str:
        asked = self._clock.now()
        try:
            token = await self._ask(holder, state)
        except Revoked as error:
            state.revoked = error
            log.error("%s: %s", holder.name, error.message)
            raise
        except GatewayError as error:
            state.failures += 1
            log.warning("%s: no fresh token: %s", holder.name, error.message)
            if state.failures >= FAILURES:
                state.rest_until = self._clock.now() + REST_S
            raise
        if token.refresh and token.refresh != state.refresh:
            await self._keep(holder, state, token.refresh)
        state.failures = 0
        state.token, state.good_until = token.access, asked + token.life_s
        state.renew_at = asked + token.life_s - token.lead_s
        return token.access

    async def _keep(self, holder: Holder, state: _State, refresh: str) -> None:
        """The old one is void from now on; what is not on the disk would be lost with this process."""
        state.refresh = refresh
        if self._kept is not None:
            self._kept[holder.place] = refresh
        try:
            await self._vault.keep(holder.place, refresh)
        except OSError as error:
            log.error("%s: the rotated refresh token cannot be stored (%s); it is lost with the end of this process",
                      holder.name, error.strerror or "no reason given")

    async def _ask(self, holder: Holder, state: _State) -> Token:
        last: GatewayError | None = None
        for wait_s in RETRIES_S:
            if wait_s:
                await asyncio.sleep(wait_s)
            try:
                async with asyncio.timeout(TRY_S):
                    return await self._once(holder, state)
            except TimeoutError:
                last = GatewayError("timeout", f"the token endpoint did not answer within {TRY_S:g} s")
            except GatewayError as error:
                if error.kind not in _AGAIN:
                    raise
                last = error
        assert last is not None
        raise last

    async def _once(self, holder: Holder, state: _State) -> Token:
        body = holder.grant.body(state.refresh, self._clock.wall())
        reply = await self._transport.send(Outgoing(method="POST", url=holder.grant.token_url, body=body,
                                                    headers=_FORM, timeouts=Timeouts(),
                                                    proxy=holder.proxy))
        try:
            return read(reply.status, await reply.read(ANSWER_BYTES))
        finally:
            if not reply.complete:
                reply.close()


def _seen(task: asyncio.Task[str], state: _State) -> None:
    """The refresh is over; its failure was told to whoever waited, or is in the log."""
    state.task = None
    if not task.cancelled():
        task.exception()
