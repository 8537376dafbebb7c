"""Who would serve a name, and why? The order of targets now, with the gateway's own cooldowns, for any request that one describes."""
from typing import Annotated, Final

import msgspec

from gateway.admin.errand import Ask, Errand, Facts
from gateway.pipeline.explaining import RequestFacts, explain_live
from gateway.routing.explain import Place

MOST: Final = 500


class Described(Ask, frozen=True):
    """A request, as far as routing cares."""
    model: Annotated[str, msgspec.Meta(min_length=1, max_length=400, description="The name that a client would ask for.")]
    tools: Annotated[bool, msgspec.Meta(description="It offers tools.")] = False
    image: Annotated[bool, msgspec.Meta(description="It holds a picture.")] = False
    tokens: Annotated[int, msgspec.Meta(ge=0, le=100_000_000, description="Length of its prompt.")] = 0
    n: Annotated[int, msgspec.Meta(ge=1, le=128, description="Choices that it wants.")] = 1


class Explained(Facts, frozen=True):
    """Places in the order of attempts, then who is skipped."""
    model: str
    kind: str                                    # what the name is: target, combo, model, alias, virtual, family
    strategy: str
    places: list[Place]
    more: int


async def explained(visit: Errand) -> Explained:
    """Raises no_model, like a request would."""
    asked: Described = visit.query
    facts = RequestFacts(tools=asked.tools, image=asked.image, tokens=asked.tokens, n=asked.n)
    found = explain_live(visit.ground, asked.model, facts)
    return Explained(model=asked.model, kind=found.kind, strategy=found.strategy, places=found.places[:MOST],
                     more=max(len(found.places) - MOST, 0))


class Names(Facts, frozen=True):
    """What a client may ask for."""
    names: list[str]


async def names(visit: Errand) -> Names:
    """For completing what is typed: combos, models, then providers' own."""
    return Names(names=[entry.id for entry in visit.ground.catalog.listed[:5_000]])
