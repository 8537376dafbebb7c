"""How is an operation served that has one answer and no stream? Embeddings: texts in, vectors out, by the same loop as turns.

Vectors of different models cannot be compared, so another target is asked only if it serves the very same model.
"""
from typing import Final

from gateway.core.call import Call
from gateway.core.embedding import Ask, Vectors
from gateway.core.errors import GatewayError, bad_request
from gateway.core.events import Usage
from gateway.core.redact import Scrubber
from gateway.core.request import Request
from gateway.pipeline import again, attempts
from gateway.pipeline.attempt import NO_ANSWER, unanswered
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground
from gateway.pipeline.hop import Hop
from gateway.pipeline.linger import linger
from gateway.pipeline.prepare import Plan
from gateway.pipeline.serve import Story
from gateway.pipeline.sinks import commit
from gateway.pipeline.tracing import carried
from gateway.policy.access import restrict
from gateway.policy.keys import Principal
from gateway.providers.classify import classify, refine
from gateway.routing.catalog import Catalog
from gateway.routing.resolve import Resolution, resolve
from gateway.stream.turn import Rules
from gateway.tokens.estimate import CHARS_PER_TOKEN, estimate
from gateway.upstream.deadline import Deadline
from gateway.upstream.transport import Outgoing, Reply
from gateway.wire.change import changed
from gateway.wire.embeddings import CLIENTS, UPSTREAMS

ERROR_BODY_LIMIT: Final = 65_536
NOT_IMPLEMENTED: Final = 501
BODY_LIMIT: Final = 256 << 20                        # 2048 vectors of 4096 numbers are 180 MB of JSON
# Forms of a name that mean one model and nothing else.
_EXACT: Final = frozenset({"target", "model", "alias"})


def parse(call: Call, client: Client, body: bytes) -> Request:
    """Raises bad_request naming the field."""
    ask = CLIENTS[call.operation].parse(body)
    ask.model = ask.model or call.path_model
    longest, total = sizes(ask)
    request = Request(wire=call.wire, raw=body, body=ask, model=ask.model, stream=False, max_tokens=0, chars=total,
                      operation=call.operation)
    call.request = request
    return request


def sizes(ask: Ask) -> tuple[int, int]:
    """Characters of the longest input and of all of them; a token counts as four."""
    texts = ask.texts
    each = [len(text) for text in texts] if texts is not None else [len(ids) * CHARS_PER_TOKEN for ids in ask.inputs]
    return max(each), sum(each)


def plan(call: Call, request: Request, principal: Principal, ground: Ground) -> Plan:
    """Raises no_model when nobody serves what was asked, forbidden when the key may not use it."""
    resolution = meant(request.model, ground.catalog)
    targets = restrict(principal, resolution.requested, resolution.kind, resolution.targets)
    same = tuple(target for target in targets if target.model.id == targets[0].model.id)
    longest, _ = sizes(request.body)
    return Plan(request, resolution.only(same), Rules(), longest // CHARS_PER_TOKEN)


def meant(name: str, catalog: Catalog) -> Resolution:
    """The model behind a name. Without one it must be plain which; a model whose kind nobody stated may well embed."""
    index = catalog.kinds.get("embedding")
    if not name or name == "auto":
        if index is None or len(index.ids) != 1:
            raise bad_request("Invalid request: model: this field is required; vectors of different models cannot be compared.",
                              "model")
        name = next(iter(index.ids))
    try:
        return resolve(name, catalog, "embedding")
    except GatewayError:
        found = resolve(name, catalog) if _may_embed(name, catalog) else None
        if found is None or found.kind not in _EXACT:
            raise
        return found


def _may_embed(name: str, catalog: Catalog) -> bool:
    chat = catalog.kinds["chat"]
    return name in chat.labels or name in chat.ids or name in chat.aliases


class Fetch(Hop):
    """One attempt at one answer."""

    __slots__ = ()

    def tick(self, now: float) -> None:
        if now >= self.commit_by:
            self.overdue = True
            raise GatewayError("timeout", "the time for this request is over")
        assert self.deadline is not None
        self.deadline.wake_at(self.commit_by)


async def fetch(x: Fetch) -> None:
    """Ask one candidate and answer the client."""
    lane, ask = x.lane, x.plan.request.body
    form = UPSTREAMS.get(lane.wire.name)
    if form is None:
        raise GatewayError("unsupported", "This provider's API has no embeddings.")
    url = lane.base_url + form.path(lane.to_whole.model) + (f"?{lane.query}" if lane.query else "")
    body = form.build(ask, lane.to_whole)
    if lane.changes:
        body = changed(body, lane.changes)
    out = Outgoing(method="POST", url=url, body=body, headers=carried(x, lane.headers_whole),
                   timeouts=lane.timeouts, proxy=lane.proxy)
    with Deadline(lane.timeouts, stream=False, on_tick=x.tick) as x.deadline:
        x.deadline.wake_at(x.commit_by)
        running = x.ground.inflight.attempts
        running.add(x.deadline)
        try:
            x.asks()
            reply = await lane.transport.send(out)
            try:
                answer = await whole(x, reply)
            finally:
                linger(reply, False)
        finally:
            running.discard(x.deadline)
    try:
        vectors = form.read(answer, ask)
    except GatewayError as error:
        raise refine(error, lane.candidate.target.provider) from None
    if len(vectors.items) != len(ask.inputs) or not all(vectors.items):
        raise GatewayError("bad_reply", f"The provider answered {len(vectors.items)} embeddings for {len(ask.inputs)} inputs.")
    await deliver(x, vectors)


async def ventured(x: Fetch) -> None:
    """``fetch``, where a model that nobody called one for vectors does not suffer as a chat model for being none."""
    try:
        await fetch(x)
    except GatewayError as error:
        if x.lane.candidate.target.model.kind == "embedding" or not _declines(error):
            raise
        raise GatewayError("unsupported", error.message, upstream_status=error.upstream_status, verbatim=error.verbatim) from None


def _declines(error: GatewayError) -> bool:
    """Local servers say 500 or 501, or nothing like vectors, when their model makes none: nothing is wrong with it."""
    return error.kind == "bad_reply" or (error.kind == "server_error" and
                                         (error.upstream_status == NOT_IMPLEMENTED or "embed" in error.message.lower()))


async def whole(x: Fetch, reply: Reply) -> bytes:
    """The body of a good answer. Raises what an error status means."""
    x.attempt.status, x.attempt.headers_at = reply.status, x.heard()
    assert x.deadline is not None
    x.deadline.headers()
    if reply.status >= 400:
        raise classify(reply.status, reply.headers, await reply.read(ERROR_BODY_LIMIT), x.lane.candidate.target.provider)
    if not 200 <= reply.status < 300 or reply.status in NO_ANSWER:
        raise unanswered(reply.status)
    x.asks()
    body = await reply.read(BODY_LIMIT)
    x.heard()
    return Scrubber(x.lane.secrets).replace(body) if x.lane.secrets else body


async def deliver(x: Fetch, vectors: Vectors) -> None:
    call, ask, now = x.call, x.plan.request.body, x.ground.clock.now()
    counted = vectors.tokens
    if counted is None:
        counted = vectors.tokens = sum(map(estimate, ask.texts)) if ask.texts is not None else sum(map(len, ask.inputs))
        call.usage = Usage(input=counted, total=counted, estimated=True)
    else:
        call.usage = Usage(input=counted, total=counted)
    body = CLIENTS[call.operation].render(vectors, ask, shown_model(x, vectors))
    commit(x, now)
    call.first_token_at, call.finish = now, "stop"
    x.served(vectors.model)
    await x.client.answer(body)


def shown_model(x: Fetch, vectors: Vectors) -> str:
    """The model's name in the answer (stream.model_echo)."""
    echo, own = x.ground.snapshot.stream.model_echo, x.lane.to_whole.model
    return {"requested": x.plan.request.model, "upstream": vectors.model}.get(echo) or own


async def nothing_left(x: Fetch) -> bool:
    """A failed attempt has no half of an answer."""
    return False


WAY: Final = attempts.Way(Fetch, ventured, nothing_left)


async def run(call: Call, plan: Plan, client: Client, ground: Ground) -> None:
    await attempts.run(call, plan, client, ground, WAY)


EMBED: Final = Story(parse, plan, run, again.never)
