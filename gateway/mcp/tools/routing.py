"""Who would serve a request, what would it cost, which combo suits a task, and does it really work?"""
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from gateway.admin import playground, records
from gateway.admin.errand import Ask, Errand, Facts
from gateway.mcp.tools.combos import ComboMetrics, measured
from gateway.pipeline.explaining import RequestFacts, explain_live
from gateway.routing.combos import Combo
from gateway.routing.explain import Place
from gateway.routing.places import Leg
from gateway.store.reading import Story

MOST: Final = 100
MILLION: Final = 1_000_000
Task = Literal["coding", "review", "planning", "analysis", "debugging", "documentation", "general"]
# The name that the gateway has for such a task, whatever combos there are.
VIRTUAL: Final[dict[str, str]] = {"coding": "auto/coding", "review": "auto/coding", "debugging": "auto/coding",
                                  "planning": "auto/best-reasoning", "analysis": "auto/best-reasoning",
                                  "documentation": "auto/best-chat", "general": "auto"}

Model = Annotated[str, Meta(min_length=1, max_length=400, description="A model, provider/model, a combo, auto or auto/NAME.")]
Count = Annotated[int, Meta(ge=0, le=100_000_000)]


class Request(Ask, frozen=True):
    """A request, as far as routing cares."""
    model: Model
    prompt_tokens: Annotated[int, Meta(ge=0, le=100_000_000, description="Length of its prompt.")] = 0
    output_tokens: Annotated[int, Meta(ge=0, le=10_000_000, description="Length of its answer, for the cost.")] = 0
    tools: Annotated[bool, Meta(description="It offers tools.")] = False
    image: Annotated[bool, Meta(description="It holds a picture.")] = False


class Costed(Facts, frozen=True):
    """A place, and what the request would cost there; null where the price is unknown."""
    place: Place
    cost_usd: float | None


class Simulated(Facts, frozen=True):
    """Nobody was asked. ``fallbacks`` in the order in which they would be tried; ``skipped`` with the reason."""
    model: str
    kind: str
    strategy: str
    primary: Costed | None
    fallbacks: list[Costed]
    skipped: list[Place]
    best_cost_usd: float | None
    worst_cost_usd: float | None


class Past(Ask, frozen=True):
    """A request that ended."""
    request: Annotated[str, Meta(min_length=1, max_length=400, description="Its X-Request-ID, or the number of its record.")]


class Wish(Ask, frozen=True):
    """What it is for, and within which limits."""
    task: Task
    max_usd_per_million: Annotated[float, Meta(ge=0, le=1e6, description="Most that a million tokens may cost (.6 input, .4 output); "
                                               "0 = any.")] = 0.0
    max_first_token_ms: Annotated[float, Meta(ge=0, le=3.6e6, description="Longest usual wait for the first token; 0 = any.")] = 0.0


class Ranked(Facts, frozen=True):
    """A combo, by the target that it would ask first. ``fit``: 0 to 1, by the lines of models that are known."""
    combo: str
    first: str
    fit: float
    usd_per_million: float | None
    first_token_ms: float
    success: float | None
    usable: int
    fits_limits: bool
    against: list[str]


class Best(Facts, frozen=True):
    """Best first. ``virtual``: the gateway's own name for such tasks, which compares all models by itself."""
    task: str
    best: str | None
    virtual: str
    ranking: list[Ranked]


class Message(Ask, frozen=True):
    """One turn."""
    role: Literal["system", "user", "assistant"]
    content: Annotated[str, Meta(max_length=200_000)]


class Chat(Ask, frozen=True):
    """A real request."""
    model: Model
    messages: Annotated[list[Message], Meta(min_length=1, max_length=200)]
    max_tokens: Annotated[int, Meta(ge=1, le=100_000)] = 1_024
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None


async def simulate(errand: Errand, asked: Request) -> Simulated:
    found = explain_live(errand.ground, asked.model, RequestFacts(tools=asked.tools, image=asked.image, tokens=asked.prompt_tokens))
    tried = [Costed(place=place, cost_usd=cost(place, asked)) for place in found.places if place.position is not None]
    costs = [one.cost_usd for one in tried if one.cost_usd is not None]
    return Simulated(model=asked.model, kind=found.kind, strategy=found.strategy, primary=tried[0] if tried else None,
                     fallbacks=tried[1:MOST], skipped=[place for place in found.places if place.position is None][:MOST],
                     best_cost_usd=min(costs, default=None), worst_cost_usd=max(costs, default=None))


def cost(place: Place, asked: Request) -> float | None:
    if place.input_usd is None or place.output_usd is None:
        return None
    return (place.input_usd * asked.prompt_tokens + place.output_usd * asked.output_tokens) / MILLION


async def explain(errand: Errand, asked: Past) -> Story:
    errand.params = {"id": asked.request}
    return await records.one(errand)


async def best(errand: Errand, asked: Wish) -> Best:
    combos = [combo for combo in errand.ground.catalog.combos.values()
              if errand.principal is None or errand.principal.allows(combo.name)]
    ranking = [row for combo in combos if (row := ranked(combo, errand, asked)) is not None]
    ranking.sort(key=lambda row: (not row.fits_limits, not row.usable, -round(row.fit, 2), -round(row.success or 0.5, 1),
                                  row.first_token_ms))
    first = next((row.combo for row in ranking if row.fits_limits and row.usable), None)
    return Best(task=asked.task, best=first, virtual=VIRTUAL[asked.task], ranking=ranking[:MOST])


def ranked(combo: Combo, errand: Errand, asked: Wish) -> Ranked | None:
    now, health = errand.ground.clock.now(), errand.ground.health
    legs = [leg for leg in combo.legs() if leg.candidates]
    if not legs:
        return None
    free: Leg = next((leg for leg in legs if any(health.cooldown(one, now) is None for one in leg.candidates)), legs[0])
    told: ComboMetrics = measured(combo, errand)
    row = next(row for row in told.targets if row.target == free.target.label)
    traits = free.target.traits
    first_ms = row.measured.ttft_ms or traits.first_ms
    against = []
    if asked.max_usd_per_million and (traits.mix is None or traits.mix > asked.max_usd_per_million):
        against.append("its price is unknown" if traits.mix is None else f"it costs ${traits.mix:g} a million tokens")
    if asked.max_first_token_ms and first_ms > asked.max_first_token_ms:
        against.append(f"its first token takes {first_ms:.0f} ms")
    return Ranked(combo=combo.name, first=free.target.label, fit=traits.fit(asked.task), usd_per_million=traits.mix,
                  first_token_ms=round(first_ms, 1), success=row.measured.success, usable=told.usable, fits_limits=not against,
                  against=against)


async def route(errand: Errand, asked: Chat) -> playground.Outcome:
    body: dict[str, Any] = {"model": asked.model, "max_tokens": asked.max_tokens,
                            "messages": [{"role": turn.role, "content": turn.content} for turn in asked.messages]}
    if asked.temperature is not None:
        body["temperature"] = asked.temperature
    return await playground.put(errand, playground.call_of(errand.id, errand.ground, "mcp"), body)
