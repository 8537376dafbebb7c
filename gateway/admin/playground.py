"""How does a request look from here? The playground asks the gateway as a client would, by the operator's right; tests ask briefly."""
import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, Final, cast

import msgspec
from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway.admin.errand import Ask, Errand, Facts, operator
from gateway.admin.live import Hop, hop
from gateway.admin.visit import Visit
from gateway.core.call import Call
from gateway.core.errors import GatewayError
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground
from gateway.pipeline.serve import serve
from gateway.policy.keys import Principal
from gateway.wire import WIRES

AT_ONCE: Final = 4
MAX_TARGETS: Final = 20
TEST_S: Final = 60.0
ANSWER_BYTES: Final = 1 << 20
WIRE: Final = "openai-chat"


def call_of(name: str, ground: Ground, surface: str = "playground") -> Call:
    return Call(id=name, surface=surface, wire=WIRE, operation="chat", started=ground.clock.now(), wall=ground.clock.wall())


async def chat(visit: Visit) -> web.StreamResponse:
    """A body of /v1/chat/completions, answered like there, streamed or whole."""
    from gateway.admin.door import HEADERS

    call = call_of(visit.id, visit.ground)
    client = Client(visit.http, call, WIRES[WIRE], {**HEADERS, "X-Request-ID": visit.id, "request-id": visit.id}, None)
    client.principal = operator()
    try:
        await serve(call, client, visit.ground)
    finally:                                         # it may have cost something, whatever became of it
        visit.note("playground", call.request.model if call.request is not None else "", call.outcome, ok=call.error is None)
    if client.response is None:
        raise ConnectionResetError("the operator went away before anything could be answered")
    return client.response


class Trial(Ask, frozen=True):
    """What to ask everybody."""
    targets: Annotated[list[str], msgspec.Meta(min_length=1, max_length=MAX_TARGETS, description="Names of models or combos.")]
    prompt: Annotated[str, msgspec.Meta(max_length=2_000)] = "Say hello."
    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 64


class Outcome(Facts, frozen=True):
    """What came of one name."""
    target: str
    ok: bool
    status: int
    routed: str
    ms: float
    ttft_ms: float | None
    error: str | None
    message: str | None
    text: str
    attempts: list[Hop]


class Outcomes(Facts, frozen=True):
    """In the order of the names."""
    outcomes: list[Outcome]


async def trial(visit: Errand) -> Outcomes:
    """Real requests: they cost what they cost."""
    asked: Trial = visit.body
    room = asyncio.Semaphore(AT_ONCE)

    async def one(place: int, target: str) -> Outcome:
        async with room:
            return await ask(target, asked, f"{visit.id}-{place}", visit)

    visit.note("trial", ", ".join(asked.targets))
    return Outcomes(outcomes=list(await asyncio.gather(*(one(place, target) for place, target in enumerate(asked.targets, 1)))))


class Unconnected:
    """The side of a request that nobody sent over a connection."""
    headers: Mapping[str, str] = {"Content-Type": "application/json"}
    method = "POST"
    transport = None


class Inside(Client):
    """A client in this process: nothing is written to a connection, the answer is kept."""

    __slots__ = ("answered", "body_sent")

    def __init__(self, call: Call, body: bytes, principal: Principal) -> None:
        super().__init__(cast(BaseRequest, Unconnected()), call, WIRES[WIRE], {}, None)
        self.body_sent = body
        self.answered = b""
        self.principal = principal

    async def body(self, limit: int) -> bytes:
        return self.body_sent

    async def start(self) -> None:
        """Whole answers only: ``answer`` is all that is written."""

    async def answer(self, body: bytes, status: int = 200, content_type: str = "application/json",
                     more: Mapping[str, str] | None = None) -> None:
        self.call.status = status
        self.answered = body[:ANSWER_BYTES]
        self.response = web.Response(status=status)


async def ask(target: str, asked: Trial, name: str, errand: Errand) -> Outcome:
    """One short question to one name."""
    return await put(errand, call_of(name, errand.ground), {
        "model": target, "max_tokens": asked.max_tokens, "messages": [{"role": "user", "content": asked.prompt}]})


async def put(errand: Errand, call: Call, body: Mapping[str, Any]) -> Outcome:
    """A whole request, asked by the right of whoever sent the errand: with the limits, models and budgets of its key."""
    ground = errand.ground
    client = Inside(call, msgspec.json.encode(body), errand.principal or operator())
    try:
        async with asyncio.timeout(TEST_S):
            await serve(call, client, ground)
    except TimeoutError:
        call.error = GatewayError("timeout", f"No answer within {TEST_S:g} s.")
    ended = call.ended or ground.clock.now()
    return Outcome(target=str(body["model"]), ok=call.error is None and call.status == 200, status=call.status, routed=call.routed,
                   ms=round((ended - call.started) * 1000, 1),
                   ttft_ms=round((call.first_token_at - call.started) * 1000, 1) if call.first_token_at else None,
                   error=call.error.kind if call.error is not None else None,
                   message=call.error.message if call.error is not None else None,
                   text=text_of(client.answered), attempts=[hop(attempt, call) for attempt in call.attempts])


def text_of(answer: bytes) -> str:
    """The words of a whole chat answer."""
    try:
        said: Any = msgspec.json.decode(answer)
        return str(said["choices"][0]["message"]["content"] or "")[:2_000]
    except (msgspec.DecodeError, KeyError, IndexError, TypeError):
        return ""
