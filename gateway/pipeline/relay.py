"""How are operations served whose bodies we pass on as they are? Images, speech, transcriptions, moderations, ranking.

By the same loop as everything else. Who is asked next serves the very same model: what another one would paint or say is another
answer, and voices, sizes and formats of one mean nothing to the other.
"""
from typing import Any, Final

import msgspec

from gateway.core import form
from gateway.core.call import Call
from gateway.core.errors import GatewayError, bad_request
from gateway.core.events import Usage
from gateway.core.request import Request
from gateway.pipeline import again, attempts
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground
from gateway.pipeline.linger import linger
from gateway.pipeline.oneshot import Fetch, nothing_left, whole
from gateway.pipeline.prepare import Plan
from gateway.pipeline.serve import Story
from gateway.pipeline.sinks import commit
from gateway.pipeline.tracing import carried
from gateway.policy.access import restrict
from gateway.policy.keys import Principal
from gateway.providers.registry import Kind
from gateway.routing.catalog import Catalog
from gateway.routing.resolve import Resolution, resolve
from gateway.stream.turn import Rules
from gateway.tokens.estimate import CHARS_PER_TOKEN
from gateway.upstream.deadline import Deadline
from gateway.upstream.guard import returned
from gateway.upstream.transport import Outgoing
from gateway.wire import splice
from gateway.wire.change import changed
from gateway.wire.lenient import dump, load

Json = dict[str, Any]
FORM: Final = "multipart/form-data"
FILE_BYTES: Final = 25 << 20                         # https://platform.openai.com/docs/guides/speech-to-text
_OPENAI: Final = frozenset({"openai-chat", "openai-responses"})


class Operation(msgspec.Struct, frozen=True):
    """``field``: what must be there; ``wires``: formats of upstreams that have it, below the same path."""
    kind: Kind
    path: str
    field: str
    wires: frozenset[str] = _OPENAI
    form: bool = False


# https://platform.openai.com/docs/api-reference/images · /audio · /moderations · https://docs.cohere.com/reference/rerank
OPERATIONS: Final[dict[str, Operation]] = {
    "images": Operation("image", "/images/generations", "prompt"),
    "speech": Operation("speech", "/audio/speech", "input"),
    "transcriptions": Operation("transcription", "/audio/transcriptions", "file", form=True),
    "moderations": Operation("moderation", "/moderations", "input"),
    "rerank": Operation("rerank", "/rerank", "query", _OPENAI | {"cohere"}),
}


# ---------------------------------------------------------------- what is asked
def parse(call: Call, client: Client, body: bytes) -> Request:
    """Raises bad_request naming the field."""
    operation = OPERATIONS[call.operation]
    kind = client.headers.get("Content-Type", "")
    request = _form(body, kind, operation) if operation.form else _json(body, kind, operation)
    request.wire, request.operation = call.wire, call.operation
    call.request = request
    return request


def _json(body: bytes, kind: str, operation: Operation) -> Request:
    if FORM in kind.lower():
        raise GatewayError("unsupported_media_type", "Send the body as application/json.", param="content-type")
    try:
        doc, _ = load(body)
    except ValueError:
        raise bad_request("The request body is not valid JSON.") from None
    if not isinstance(doc, dict):
        raise bad_request("The request body must be a JSON object.")
    model = doc.get("model")
    if model is not None and not isinstance(model, str):
        raise bad_request("Invalid request: model: must be a string.", "model")
    if doc.get(operation.field) in (None, ""):
        raise bad_request(f"Invalid request: {operation.field}: this field is required.", operation.field)
    return Request(wire="", raw=body, body=doc, model=model or "", stream=False, max_tokens=0, chars=_length(doc[operation.field]))


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str) else len(dump(value))


def _form(body: bytes, kind: str, operation: Operation) -> Request:
    if FORM not in kind.lower():                     # media types are read without regard to case (RFC 9110, 8.3.1)
        raise GatewayError("unsupported_media_type", f"Send the body as {FORM}.", param="content-type")
    found = form.read(body, kind)
    size = found.size(operation.field)
    if size is None:
        raise bad_request(f"Invalid request: {operation.field}: this field is required.", operation.field)
    if size > FILE_BYTES:
        raise GatewayError("body_too_large", f"{operation.field}: the file is larger than {FILE_BYTES} bytes.", param=operation.field)
    return Request(wire="", raw=body, body=found, model=found.text("model") or "", stream=False, max_tokens=0)


def plan(call: Call, request: Request, principal: Principal, ground: Ground) -> Plan:
    """Raises no_model when nobody serves what was asked, forbidden when the key may not use it."""
    resolution = meant(request.model, ground.catalog, OPERATIONS[call.operation].kind)
    targets = restrict(principal, resolution.requested, resolution.kind, resolution.targets)
    same = tuple(target for target in targets if target.model.id == targets[0].model.id)
    return Plan(request, resolution.only(same), Rules(), request.chars // CHARS_PER_TOKEN)


def meant(name: str, catalog: Catalog, kind: Kind) -> Resolution:
    """The model behind a name; without one, the first that can do it."""
    index = catalog.kinds.get(kind)
    if index is None or not index.ids:
        raise GatewayError("no_model", f"No model for this is configured (kind = {kind!r}).", param="model")
    return resolve(next(iter(index.ids)) if name in ("", "auto") else name, catalog, kind)


# ---------------------------------------------------------------- one attempt
async def fetch(x: Fetch) -> None:
    """Ask one candidate and hand its answer on."""
    lane, operation = x.lane, OPERATIONS[x.call.operation]
    if lane.wire.name not in operation.wires:
        raise GatewayError("unsupported", "This provider's API does not have this operation.")
    url = lane.base_url + operation.path + (f"?{lane.query}" if lane.query else "")
    body, headers = said(x, operation)
    out = Outgoing(method="POST", url=url, body=body, headers=carried(x, headers), timeouts=lane.timeouts, proxy=lane.proxy)
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
    await deliver(x, answer, returned(reply.headers))


def said(x: Fetch, operation: Operation) -> tuple[bytes, dict[str, str]]:
    """The client's own body with the target's name of the model."""
    request, model = x.plan.request, x.lane.to_whole.model
    headers = dict(x.lane.headers_whole)
    headers["Accept"] = "*/*"
    if operation.form:
        headers["Content-Type"] = x.client.headers["Content-Type"]
        return request.body.replaced("model", model), headers
    raw = splice.set_model(request.raw, request.model, model)
    if raw is None:
        raw = dump(request.body | {"model": model})
    return changed(raw, x.lane.changes) if x.lane.changes else raw, headers


async def deliver(x: Fetch, answer: bytes, headers: dict[str, str]) -> None:
    kind = next((value for name, value in headers.items() if name.lower() == "content-type"), "application/json")
    if not answer:
        raise GatewayError("bad_reply", "The provider answered 200 with an empty body.")
    if "html" in kind or "json" in kind and _failed(answer):
        raise GatewayError("bad_reply", "The provider answered 200 with something that is no answer.")
    call, now = x.call, x.ground.clock.now()
    call.usage = _usage(answer) if "json" in kind else None
    commit(x, now)
    call.first_token_at, call.finish = now, "stop"
    more = {name: value for name, value in headers.items() if name.lower() != "content-type"}
    await x.client.answer(answer, content_type=kind, more=more)


class _Told(msgspec.Struct):
    usage: Json | None = None
    error: Any = None


def _failed(answer: bytes) -> bool:
    try:
        return bool(msgspec.json.decode(answer, type=_Told).error)
    except msgspec.DecodeError:
        return True


def _usage(answer: bytes) -> Usage | None:
    """Where it is told in OpenAI's words: images and transcriptions of newer models."""
    try:
        native = msgspec.json.decode(answer, type=_Told).usage
    except msgspec.DecodeError:
        return None
    if native is None:
        return None
    given, output = native.get("input_tokens"), native.get("output_tokens")
    if not isinstance(given, int):
        return None
    n_out = output if isinstance(output, int) else 0
    return Usage(input=given, output=n_out, total=given + n_out, native=native)


WAY: Final = attempts.Way(Fetch, fetch, nothing_left)


async def run(call: Call, plan: Plan, client: Client, ground: Ground) -> None:
    await attempts.run(call, plan, client, ground, WAY)


RELAY: Final = Story(parse, plan, run, again.never)
