"""What do admission and routing of one request cost? Run: python benchmarks/micro routing

One client key with limits, a catalogue of 20 providers with 10 models each, a model that five of them serve with two keys
each. Each row is one step; ``all`` is the whole: authenticate, take limits, resolve, restrict, estimate, walk, health check,
book the success, settle. The bar is 50 µs.

Then every strategy: resolve and order a combo of 50 targets (200 µs), ``auto`` over 200 candidates (500 µs), in a house where a
tenth of the accounts rests and fails now and then, everybody was measured and has limits of its own; 99 of 100 orders must stay
below a millisecond, with every strategy.
"""
from collections.abc import Callable
from random import Random
from statistics import quantiles
from time import process_time_ns

from benchmarks.micro.timing import timed
from gateway.core.errors import GatewayError
from gateway.core.request import Request
from gateway.core.secret import Secret
from gateway.policy.access import browser_guard, restrict
from gateway.policy.keys import ClientKey, KeyRing, digest
from gateway.policy.limits import Limits
from gateway.providers.registry import Account, Ceiling, Model, Price, Provider
from gateway.routing.ask import Ask
from gateway.routing.catalog import Catalog
from gateway.routing.combos import Plan, StepPlan
from gateway.routing.cooldown import Cooldown
from gateway.routing.families import successors
from gateway.routing.health import Health
from gateway.routing.resolve import resolve
from gateway.routing.strategies import STRATEGIES
from gateway.routing.walk import Walk
from gateway.tokens.estimate import estimate, estimate_request

BAR_US = 50.0
ORDER_BAR_US = 200.0
AUTO_BAR_US = 500.0
P99_BAR_US = 1000.0
STAGE_BAR_US = 100.0
LIMIT_BAR_US = 5.0
FAMILY_BAR_US = 5.0


def providers() -> list[Provider]:
    found = []
    for at in range(20):
        names = [f"model-{at}-{n}" for n in range(9)] + (["m"] if at < 5 else [f"model-{at}-x"])
        found.append(Provider(id=f"p{at}", name=f"p{at}", base_url=f"https://p{at}.example/v1", order=at,
                              accounts=tuple(Account(n, Secret(f"sk-{at}-{n}-0123456789")) for n in (1, 2)),
                              models={name: Model(name, context=128_000, tools=True) for name in names}))
    return found


class Scene:
    """Everything that outlives a request, and one request."""

    def __init__(self) -> None:
        self.catalog = Catalog(providers())
        self.health = Health()
        self.limits = Limits()
        self.keys = KeyRing([ClientKey(name="laptop", sha256=digest("gw-test-key"), rpm=10**9, tpm=10**12, concurrency=100)])
        self.headers = {"authorization": "Bearer gw-test-key", "content-type": "application/json", "host": "127.0.0.1:8788"}
        self.request = Request(wire="openai-chat", raw=b"x" * 900, body=None, model="m", stream=True, chars=800,
                               tools={"f": None})
        self.resolution = resolve("m", self.catalog)
        self.principal = self.keys.authenticate(self.headers)
        self.candidate = self.resolution.targets[0].candidates[0]

    def all(self) -> None:
        now, request = 1000.0, self.request
        principal = self.keys.authenticate(self.headers)
        tokens = estimate_request(request)
        reservation = self.limits.take(principal, tokens + 1000, now)
        resolution = resolve(request.model, self.catalog)
        restrict(principal, resolution.requested, resolution.kind, resolution.targets)
        candidate = Walk(resolution, request, self.health, tokens, now).next(now)
        assert candidate is not None
        self.health.succeeded(candidate, now)
        reservation.settle(900, now)

    def failover(self) -> None:
        """Four failed hops before the fifth answers."""
        walk = Walk(self.resolution, self.request, Health(), 200, 1000.0)
        for _ in range(4):
            candidate = walk.next(1000.0)
            assert candidate is not None
            walk.failed(candidate, SERVER_ERROR)
        walk.next(1000.0)

    def walk(self) -> None:
        Walk(self.resolution, self.request, self.health, 200, 1000.0).next(1000.0)

    def limit(self) -> None:
        self.limits.take(self.principal, 1000, 1000.0).settle(900, 1000.0)


class Lived:
    """A combo of ``n`` targets with a past: everybody was measured, a tenth rests."""

    def __init__(self, strategy: str, n: int) -> None:
        found = [Provider(id=f"p{at}", name=f"p{at}", base_url=f"https://p{at}.example/v1", order=at,
                          accounts=(Account(1, Secret(f"sk-{at}-0123456789")),),
                          models={f"m{each}": Model(f"m{each}", context=128_000, price=Price(input=each + 1, output=at + 1))
                                  for each in range(10)}) for at in range(n // 10)]
        steps = tuple(StepPlan(target=f"{p.id}/{model}", weight=1.0 + at) for at, p in enumerate(found) for model in p.models)
        self.catalog = Catalog(found, combos=[Plan(name="best", strategy=strategy, steps=steps)])
        self.health = Health(dice=Random(1))
        self.limits = Limits()
        self.health.usage = self.limits.shares
        self.request = Request(wire="openai-chat", raw=b"{}", body=None, model="best", stream=True)
        self.ask = Ask(session="s", prefix="p", text="please fix this function", chars=4000, turns=5, tools=2, answered=True)
        for at, target in enumerate(self.catalog.targets):
            [candidate] = target.candidates
            for sample in range(12):
                self.health.succeeded(candidate, 900.0, first_s=0.1 + (at * 7 + sample) % 30 / 10, rate=40.0)
            self.limits.take_account(candidate.account_key, Ceiling(rpm=1000), 1000, 990.0).release(995.0)
            self.health.quotas.set(candidate.account_key, "session", at % 7 / 10, 3000.0, 900.0)
            self.health.quotas.set(candidate.account_key, "weekly", at % 10 / 10, 1000.0 * (at + 1), 900.0)
            if at % 10 == 3:
                self.health.failed(candidate, GatewayError("rate_limited", "slow", retry_after_s=600), 999.0, 0.0)

    def order(self) -> None:
        candidate = Walk(resolve("best", self.catalog), self.request, self.health, 500, 1000.0, self.ask, 1800.0).next(1000.0)
        assert candidate is not None

    def p99(self) -> float:
        """Microseconds that 99 of 100 orders stay below."""
        took: list[float] = []
        for _ in range(1_000):
            began = process_time_ns()
            self.order()
            took.append((process_time_ns() - began) / 1e3)
        return quantiles(took, n=100)[98]


class Crowd(Lived):
    """Thousands rest elsewhere, and before each order somebody fails anew."""

    def __init__(self, strategy: str, n: int) -> None:
        super().__init__(strategy, n)
        self.failures = 0
        for _ in range(4_000):
            self.fail()

    def fail(self) -> None:
        self.failures += 1
        ends = 2000.0 + self.failures
        self.health.rest(("elsewhere", f"m{self.failures % 4_000}", ""), Cooldown(ends, "server_error", "heuristic", 900.0))

    def after_a_failure(self) -> None:
        self.fail()
        self.order()


def orders() -> list[tuple[str, float, float]]:
    rows: list[tuple[str, float, float]] = []
    for strategy in STRATEGIES:
        lived = Lived(strategy, 50)
        rows.append((f"resolve and order 50 targets: {strategy}", timed(lived.order, calls=100), ORDER_BAR_US))
        rows.append((f"the same, p99: {strategy}", lived.p99(), P99_BAR_US))
    rows.append(("order 200 candidates: auto", timed(Lived("auto", 200).order, calls=50), AUTO_BAR_US))
    return rows


SERVER_ERROR = GatewayError("server_error", "down")


def main() -> list[tuple[object, ...]]:
    scene, sick = Scene(), Scene()
    for target in sick.catalog.targets[:40]:
        for candidate in target.candidates[:1]:
            sick.health.failed(candidate, GatewayError("rate_limited", "slow", retry_after_s=600), 1000.0, 0.0)
    crowd = Crowd("p2c", 50)
    text = "The gateway answers with whole turns. " * 100
    steps: dict[str, Callable[[], object]] = {
        "authenticate": lambda: scene.keys.authenticate(scene.headers),
        "browser guard (open mode)": lambda: browser_guard(scene.headers, "POST"),
        "limits: take and settle": scene.limit,
        "resolve (kept)": lambda: resolve("m", scene.catalog),
        "walk: first candidate": scene.walk,
        "walk: first candidate, 40 cooldowns": sick.walk,
        "walk: first candidate, 4,000 cooldowns": crowd.after_a_failure,
        "health check of one candidate": lambda: sick.health.cooldown(sick.candidate, 1000.0),
        "walk: failover over 4 hops": scene.failover,
        "family fallback": lambda: successors("claude-opus-4-8"),
        "estimate 3.8 KB of text": lambda: estimate(text),
    }
    bars = {"limits: take and settle": LIMIT_BAR_US, "family fallback": FAMILY_BAR_US, "walk: failover over 4 hops": STAGE_BAR_US,
            "walk: first candidate, 4,000 cooldowns": ORDER_BAR_US}
    return [*((name, timed(step), *((bars[name],) if name in bars else ())) for name, step in steps.items()),
            ("routing and admission of one request", timed(scene.all), BAR_US), *orders()]
