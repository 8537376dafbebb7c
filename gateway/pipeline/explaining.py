"""Why was who asked? The decision of routing, told as a header, as a line of the record and as data: by routing's own code."""
from typing import TYPE_CHECKING, Final

import msgspec

from gateway.core.call import Attempt, Call
from gateway.core.request import Request
from gateway.pipeline.ground import Ground
from gateway.routing.catalog import Candidate
from gateway.routing.explain import Decision, Place, decided, told
from gateway.routing.trail import encode, route_headers

if TYPE_CHECKING:
    from gateway.pipeline.search import Search

HEADER: Final = "X-Gateway-Decision"
NAMED: Final = 12                                    # places that a line names
LINE_CHARS: Final = 1024


class RequestFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A request as far as routing cares."""
    tools: bool = False
    image: bool = False
    tokens: int = 0                                  # of its prompt
    n: int = 1                                       # choices
    stream: bool = True


PLAIN: Final = RequestFacts()


def explain_live(ground: Ground, model: str, facts: RequestFacts = PLAIN) -> Decision:
    """Who would serve this name in this moment: with the cooldowns, sessions and full accounts of a running gateway. Changes
    nothing and calls nobody; raises no_model, like a request would."""
    request = Request(wire="openai-chat", raw=b"", body=None, model=model, stream=facts.stream, n=facts.n, images=int(facts.image),
                      tools={"a_tool": None} if facts.tools else {})
    now = ground.clock.now()

    def full_s(candidate: Candidate) -> float:
        return ground.limits.full_s([(candidate.account_key, candidate.target.provider.limits)], facts.tokens, now)

    return decided(model, ground.catalog, ground.health, request, facts.tokens, now,
                   sticky_ttl_s=ground.snapshot.routing.sticky_ttl_s, full_s=full_s)


def begin(search: "Search") -> None:
    """Before the first attempt: what the record says of the order; all of it where it is a header as well."""
    call, walk = search.call, search.walk
    call.strategy, call.places = walk.resolution.strategy, len(walk.legs)
    if search.ground.snapshot.log.decision_header:
        call.decision = line(told(walk, search.plan.request, search.ground.clock.now(), opening=False))


def headers(call: Call, answering: Attempt | None, ground: Ground) -> dict[str, str]:
    """X-Routed-Via, the X-Fallback headers and X-Gateway-Decision; ``answering``: None = nobody."""
    log, attempts, label = ground.snapshot.log, call.attempts, answering.label if answering is not None else ""
    if call.panel is not None:
        attempts, label = call.panel.attempts, call.panel.via(answering)
    found = route_headers(label, attempts, log.fallback_detail_header, call.started, ground.snapshot.secrets)
    if log.decision_header and call.decision:
        if not call.decision.startswith("target="):
            target = f"target={encode(answering.label)}; place={answering.rank}; " if answering is not None else "target=none; "
            call.decision = (target + call.decision)[:LINE_CHARS]
        found[HEADER] = call.decision
    return found


def brief(call: Call) -> str:
    """The decision of a request that is over, in a few words."""
    answered = call.answering
    if answered is None or not answered.committed:
        return f"none of {call.places} by {call.strategy}"
    text = f"{answered.label} is {answered.rank} of {call.places} by {call.strategy}"
    if answered.role == "resumed":
        begun = next(attempt.label for attempt in call.attempts if attempt.committed)
        return f"{text}; it went on where {begun} broke off"
    return text


def remarked(call: Call) -> str:
    """The decision with what else was done: ``…; context trimmed 12 (left out: 12 messages)``."""
    told = [f"{one.what} {one.action} {one.count}" + (f" ({one.text})" if one.text else "") for one in call.remarks]
    return "; ".join([*filter(None, (call.decision,)), *told])[:LINE_CHARS]


def line(decision: Decision) -> str:
    """``model=best; as=combo; strategy=weighted; order=a/m, b/m; skipped=c/m (cooldown)``, header-safe."""
    order = dict.fromkeys(place.label for place in decision.places if place.position is not None)
    skipped = dict.fromkeys(f"{place.label} ({place.skip})" for place in decision.places if place.position is None)
    parts = [f"model={_safe(decision.requested)}", f"as={decision.kind}", f"strategy={decision.strategy}",
             f"order={_listed(list(order))}"]
    if skipped:
        parts.append(f"skipped={_listed(list(skipped))}")
    if why := _why(decision.places):
        parts.append(f"why={_safe(why)}")
    return "; ".join(parts)


def _why(places: list[Place]) -> str:
    """Of the first, without what the other parts say."""
    first = next((place.reason for place in places if place.position == 1), "")
    return first.partition("; ")[2].partition(", ")[2]


def _listed(names: list[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(map(_safe, names[:NAMED])) + (f", +{more} more" if more > 0 else "")


def _safe(text: str) -> str:
    return encode(text.replace(";", ",").replace("\n", " "))
