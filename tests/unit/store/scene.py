"""What the tests of the store share: a clock that stands still, responses of few words."""
from gateway.core.call import Attempt, Call
from gateway.core.errors import GatewayError
from gateway.core.events import Usage
from gateway.core.ports import Kept


class StillClock:
    """Both times by hand."""

    def __init__(self, at: float = 1_000_000.0) -> None:
        self.at = at

    def now(self) -> float:
        return self.at

    def wall(self) -> float:
        return self.at


def kept(id_: str, owner: str = "ann", previous: str = "", created: float = 1_000_000.0, size: int = 2,
         items: tuple[str, ...] = ()) -> Kept:
    return Kept(id=id_, owner=owner, created=created, previous=previous, body=b"{}".ljust(size), input=b"[]", items=items,
                target="a/m")


def ids(found: list[Kept]) -> list[str]:
    return [one.id for one in found]


WALL = 1_700_000_000.0           # in the hour that began at 1_699_999_200, on the day of 1_699_920_000
HOUR, DAY = 1_699_999_200, 1_699_920_000
USED = Usage(input=100, output=10, cached=40, reasoning=3)


def attempt(provider="a", model="m", error=None, usage=None, cost=None, **more):
    """One that began with its request and took as long."""
    fields = {"label": f"{provider}/{model}", "provider": provider, "model": model, "key": 1, "started": 10.0, "ended": 10.5,
              "account": "key1", "status": 500 if error else 200, "committed": error is None, "upstream_s": 0.4, "usage": usage,
              "cost_usd": cost, "error": GatewayError(error, f"it was {error}") if error else None}
    return Attempt(**fields | more)


def finished(n=0, *attempts, outcome="ok", at=WALL, took_s=0.5, usage=USED, cost=0.002,
             **more):
    """A finished call, answered by a/m unless said otherwise."""
    attempts = list(attempts) or [attempt(usage=usage, cost=cost)]
    fields = {"id": f"req-{n}", "surface": "chat", "wire": "openai-chat", "operation": "chat", "started": 10.0, "wall": at,
              "ended": 10.0 + took_s, "outcome": outcome, "status": 200, "usage": usage, "cost_usd": cost, "principal": "ann",
              "client": "curl", "routed": attempts[-1].label, "first_token_at": 10.2, "attempts": attempts, "strategy": "priority",
              "finish": "stop", "bytes_out": 7}
    return Call(**fields | more)
