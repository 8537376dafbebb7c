"""A real gateway before scripted upstreams that it takes for remote ones, and a clock that can be put forward."""
import asyncio
import time
from collections.abc import Mapping

from gateway.mock import script as say
from gateway.mock.upstream import Answering, Upstream
from tests.conftest import client_key, provider
from tests.talk import ASK, AUTH, Answer, ask

# Refused by this model alone: the next is asked, and nobody cools.
UNABLE = say.error(400, "This model does not support what you asked for.", code="unsupported_feature")
DOWN = say.error(500, "it broke")
SLOW_DOWN = say.error(429, "slow down")
TRIPS = 12                                       # failures that open a breaker; one model each, so that none rests before


class Ahead:
    """The system's clocks, put forward by what ``by`` says."""

    def __init__(self) -> None:
        self.by = 0.0

    def now(self) -> float:
        return time.monotonic() + self.by

    def wall(self) -> float:
        return time.time() + self.by


class House:
    """``await House.open(gateway, upstream, {"a": script, …}, combos=…)``: one provider each, with one model m (and more)."""

    def __init__(self, gateway, ups: dict[str, Upstream], config: str) -> None:
        self._gateway = gateway
        self.ups = ups
        self.clock = Ahead()
        self.config = config
        self.base_url = ""

    @classmethod
    async def open(cls, gateway, upstream, answers: Mapping[str, Answering], *, models: str = '["m"]', keys: int = 1, more: str = "",
                   facts: Mapping[str, Mapping[str, str]] | None = None) -> "House":
        ups = {id: await upstream(answer) for id, answer in answers.items()}
        tables = ""
        for id, up in ups.items():
            # Asked through a proxy, since what is on this machine rests for seconds only.
            own = {"models": models, "keys": str([f"sk-{id}-{n}-0123456789" for n in range(1, keys + 1)]),
                   "proxy": f'"http://127.0.0.1:{up.port}"', **((facts or {}).get(id, {}))}
            tables += provider(f"http://{id}.example/v1", id, **own)
        house = cls(gateway, ups, client_key() + tables + more)
        await house.start()
        return house

    async def start(self) -> None:
        self.base_url = await self._gateway(self.config, self.clock)
        self.listener = self._gateway.listener

    async def restart(self) -> None:
        await self.listener.close(0)
        await self.start()

    @property
    def ground(self):
        return self.listener.desk.ground

    async def ask(self, model: str = "best", *, session: str = "", stream: bool = True, **fields) -> Answer:
        headers = {**AUTH, **({"X-Session-Id": session} if session else {})}
        return await ask(self.base_url, {**ASK, "model": model, **fields}, stream=stream, headers=headers)

    async def via(self, times: int, model: str = "best", **fields) -> str:
        """The providers that answered so many requests, one letter each."""
        return "".join([(await self.ask(model, **fields)).headers["X-Routed-Via"].partition("/")[0] for _ in range(times)])

    async def order(self, model: str = "best", **fields) -> str:
        """The order of a name, as its trail tells it when everybody refuses."""
        before = {id: up.answer for id, up in self.ups.items()}
        self.say(**dict.fromkeys(self.ups, UNABLE))
        got = await self.ask(model, **fields)
        self.say(**before)
        assert got.status == 400
        return "".join(hop.partition("/")[0] for hop in got.headers["X-Fallback-Trail"].split("; "))

    def say(self, **answers: Answering) -> None:
        for id, answer in answers.items():
            self.ups[id].answer = answer

    def asked(self, id: str) -> int:
        return len(self.ups[id].requests)

    def keys(self, id: str) -> list[int]:
        """Which of its keys each request to a provider came with."""
        return [int(asked.headers["authorization"].split("-")[2]) for asked in self.ups[id].requests]

    async def trip(self, *ids: str, times: int = TRIPS, pause_s: float = 6.0) -> None:
        """Fail on one model after the other (m1, m2, …), so that only the provider as a whole is to blame."""
        before = {id: self.ups[id].answer for id in ids}
        self.say(**dict.fromkeys(ids, DOWN))
        for n in range(1, times + 1):
            await asyncio.gather(*(self.ask(f"{id}/m{n}") for id in ids))
            self.clock.by += pause_s
        self.clock.by -= pause_s
        self.say(**before)


MANY = str(["m", *(f"m{n}" for n in range(1, TRIPS + 1))])


def three(**answers: Answering) -> dict[str, Answering]:
    return {id: say.stream(f"from {id}") for id in "abc"} | answers


def combo(strategy: str, *targets: str, name: str = "best", **settings: str) -> str:
    """A [[combos]] table; targets and settings are TOML, targets without quotes are names."""
    told = ", ".join(target if target.startswith("{") else f'"{target}"' for target in targets or ("a/m", "b/m", "c/m"))
    lines = "".join(f"{key} = {value}\n" for key, value in settings.items())
    return f'[[combos]]\nname = "{name}"\nstrategy = "{strategy}"\ntargets = [{told}]\n{lines}'
