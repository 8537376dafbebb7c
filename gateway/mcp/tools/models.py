"""Which models are there, which suits, and what do they cost? As the caller's key may use them."""
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from gateway.admin.errand import Ask, Errand, Facts, operator
from gateway.core.errors import GatewayError
from gateway.prices import as_data
from gateway.providers.registry import Kind
from gateway.routing.catalog import Target
from gateway.surfaces.models import names, room

MOST: Final = 500
Cost = float | None


class Narrow(Ask, frozen=True):
    """Which ones."""
    provider: Annotated[str, Meta(max_length=200, description="Only models of this provider; empty = all.")] = ""
    kind: Annotated[Kind | Literal[""], Meta(description="What they do; empty = all.")] = ""
    words: Annotated[str, Meta(max_length=200, description="Every word must be part of the name.")] = ""
    limit: Annotated[int, Meta(ge=1, le=MOST)] = 100
    offset: Annotated[int, Meta(ge=0, le=1_000_000)] = 0


class Need(Ask, frozen=True):
    """What a model must be able to do."""
    kind: Kind = "chat"
    tools: Annotated[bool, Meta(description="It calls tools.")] = False
    vision: Annotated[bool, Meta(description="It reads pictures.")] = False
    reasoning: Annotated[bool, Meta(description="It thinks before it answers.")] = False
    min_context: Annotated[int, Meta(ge=0, le=100_000_000, description="Tokens that must fit.")] = 0
    max_input_usd: Annotated[float, Meta(ge=0, le=1e6, description="Per million input tokens; 0 = any, unknown prices too.")] = 0.0
    usable: Annotated[bool, Meta(description="Only those that do not rest now.")] = True
    by: Annotated[Literal["listed", "price", "context", "latency"], Meta(description="What comes first.")] = "listed"
    limit: Annotated[int, Meta(ge=1, le=100)] = 20


class Named(Ask, frozen=True):
    """A name."""
    model: Annotated[str, Meta(min_length=1, max_length=400, description="A model, or provider/model.")]


class ModelView(Facts, frozen=True):
    """A name that clients may ask for, with what the largest that serve it can; null = nobody says."""
    id: str
    kind: str
    providers: list[str]
    context: int | None
    max_output: int | None
    tools: bool | None
    vision: bool | None
    reasoning: bool | None
    input_usd: float | None
    output_usd: float | None


class Models(Facts, frozen=True):
    """As many as were asked for."""
    total: int
    models: list[ModelView]


class Suited(Facts, frozen=True):
    """One target."""
    target: str
    model: ModelView
    resting: bool
    first_token_ms: float


class Found(Facts, frozen=True):
    """Those that suit."""
    total: int
    found: list[Suited]


class Priced(Facts, frozen=True):
    """US dollars per million tokens at one provider; null = unknown, which is not nothing."""
    target: str
    price: dict[str, Any] | None


class Prices(Facts, frozen=True):
    """In the order in which they are asked."""
    model: str
    prices: list[Priced]


async def listed(errand: Errand, asked: Narrow) -> Models:
    words = asked.words.lower().split()
    found = [view(name, targets) for name, targets in names(errand.ground, errand.principal or operator(), "openai-chat")
             if (not asked.provider or any(target.provider.id == asked.provider for target in targets))
             and (not asked.kind or targets[0].model.kind == asked.kind) and all(word in name.lower() for word in words)]
    return Models(total=len(found), models=found[asked.offset:asked.offset + asked.limit])


async def find(errand: Errand, asked: Need) -> Found:
    ground, now = errand.ground, errand.ground.clock.now()
    principal = errand.principal or operator()
    suited: list[Suited] = []
    for target in ground.catalog.targets:
        if suits(target, asked) and (principal.allows(target.label) or principal.allows(target.model.id)):
            resting = bool(target.candidates) and all(ground.health.cooldown(one, now) is not None for one in target.candidates)
            if not (resting and asked.usable):
                suited.append(Suited(target=target.label, model=view(target.model.id, (target,)), resting=resting,
                                     first_token_ms=round(first_ms(target, errand), 1)))
    orders: dict[str, Any] = {"price": lambda one: (one.model.input_usd is None, one.model.input_usd),
                              "context": lambda one: -(one.model.context or 0), "latency": lambda one: one.first_token_ms}
    if asked.by in orders:
        suited.sort(key=orders[asked.by])
    return Found(total=len(suited), found=suited[:asked.limit])


def suits(target: Target, asked: Need) -> bool:
    """What is unknown is no promise."""
    model = target.model
    price = model.price
    return (model.kind == asked.kind and not (asked.tools and not model.tools) and not (asked.vision and not model.vision)
            and not (asked.reasoning and not model.reasoning) and (model.context or 0) >= asked.min_context
            and not (asked.max_input_usd and (price is None or price.input > asked.max_input_usd)))


def first_ms(target: Target, errand: Errand) -> float:
    return errand.ground.health.stats.of(target.leg, errand.ground.clock.now()).mean_ms or target.traits.first_ms


async def prices(errand: Errand, asked: Named) -> Prices:
    entry = errand.ground.catalog.find(asked.model)
    principal = errand.principal or operator()
    targets = [target for target in (entry.targets if entry is not None else ())
               if principal.allows(asked.model) or principal.allows(target.label) or principal.allows(target.model.id)]
    if not targets:
        raise GatewayError("no_model", f"Nobody serves {asked.model!r}.", param="model")
    return Prices(model=asked.model, prices=[Priced(target=target.label, price=as_data(target.model.price))
                                             for target in targets[:MOST]])


def view(name: str, targets: tuple[Target, ...]) -> ModelView:
    models = [target.model for target in targets]
    context, output = room(targets)
    price = next((model.price for model in models if model.price is not None), None) if len({m.id for m in models}) == 1 else None
    return ModelView(id=name, kind=models[0].kind if models else "chat", context=context, max_output=output,
                     providers=list(dict.fromkeys(target.provider.id for target in targets))[:50],
                     tools=_some(model.tools for model in models), vision=_some(model.vision for model in models),
                     reasoning=_some(model.reasoning for model in models),
                     input_usd=price.input if price else None, output_usd=price.output if price else None)


def _some(said: Any) -> bool | None:
    """True if somebody can, False if all say that they cannot."""
    known = list(said)
    return True if True in known else None if None in known or not known else False
