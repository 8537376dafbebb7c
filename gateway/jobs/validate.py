"""Is a key good? The list of models says so for nothing; who has none is told apart from who refuses."""
import asyncio
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from gateway.core.errors import GatewayError
from gateway.jobs.listing import Means, address, listed
from gateway.providers.registry import Account, Provider

ASK_S: Final = 20.0
AT_ONCE: Final = 6
State = Literal["good", "bad", "unreachable", "untested"]


class Verdict(msgspec.Struct, frozen=True):
    """What came of one account."""
    provider: str
    account: str
    state: State
    detail: str
    models: int = 0
    seconds: float = 0.0


async def validate(providers: Sequence[Provider], means: Means) -> list[Verdict]:
    """Each account of each provider, a few at a time, in their order."""
    room = asyncio.Semaphore(AT_ONCE)
    return list(await asyncio.gather(*(_one(provider, account, means, room) for provider in providers
                                       for account in provider.accounts)))


async def _one(provider: Provider, account: Account, means: Means, room: asyncio.Semaphore) -> Verdict:
    name = account.label or f"key{account.ordinal}"
    if "demo" in provider.flags:
        return Verdict(provider.id, name, "good", "answers in this process", len(provider.models))
    if not address(provider, account):
        return Verdict(provider.id, name, "untested", "has no list of models to ask for")
    async with room:
        began = means.clock.now()
        try:
            async with asyncio.timeout(ASK_S):
                found = await listed(provider, account, means)
        except TimeoutError:
            return Verdict(provider.id, name, "unreachable", f"no answer within {ASK_S:g} s")
        except GatewayError as error:
            return Verdict(provider.id, name, _state(error), error.message, 0, means.clock.now() - began)
        return Verdict(provider.id, name, "good", "", len(found), means.clock.now() - began)


def _state(error: GatewayError) -> State:
    """A missing list says nothing about the key."""
    if error.kind in ("auth", "out_of_credits", "suspended", "forbidden_upstream"):
        return "bad"
    return "untested" if error.kind in ("model_not_found", "bad_reply", "unsupported", "rejected") else "unreachable"
