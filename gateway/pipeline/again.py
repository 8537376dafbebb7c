"""Was this asked before? An answer that is kept is given again, to the byte; who asks the same at the same time waits for it.

A ``Visit`` is one request's dealing with the cache and with its ``Idempotency-Key``: looked up before anything is taken of its
limits, so a hit costs no quota; kept only when the turn was whole. What is looked up first are the bytes themselves, so that an
exact repetition is answered unread.
"""
import asyncio
from collections.abc import Mapping
from typing import Final

from gateway.cache.exact import MAX_ENTRY_BYTES, Answer
from gateway.cache.flight import Flight
from gateway.cache.key import HEADERS, Address, raw_key, read, request_key, temperature
from gateway.core.call import Call
from gateway.core.errors import GatewayError
from gateway.core.request import Request
from gateway.pipeline.aside import LARGE_BYTES, aside
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground
from gateway.policy.keys import Principal
from gateway.routing.resolve import resolve

IDEMPOTENCY_TTL_S: Final = 86_400.0
MAX_KEY_BYTES: Final = 255
WHOLE: Final = frozenset({"stop", "tool_calls"})     # ends of a turn that was cut by nobody
YES: Final = frozenset({"on", "yes", "1", "true", "force"})
NO: Final = frozenset({"off", "no", "0", "false", "bypass", "skip"})
STATE: Final[dict[str, dict[str, str]]] = {state: {"X-FreeLLM-Cache": state} for state in ("HIT", "MISS", "OFF")}


class Tape:
    """What leaves, as long as it is small enough to be kept."""
    __slots__ = ("pieces", "n_bytes")

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.n_bytes = 0

    def add(self, data: bytes) -> None:
        self.n_bytes += len(data)
        if self.n_bytes <= MAX_ENTRY_BYTES:
            self.pieces.append(data)
        else:
            self.pieces.clear()

    @property
    def body(self) -> bytes | None:
        return b"".join(self.pieces) if self.n_bytes <= MAX_ENTRY_BYTES else None


def wanted(headers: Mapping[str, str], enabled: bool) -> bool:
    """The caller's word, then the operator's. ``Cache-Control`` can only forbid."""
    said = headers.get("X-FreeLLM-Cache")
    if said is not None:
        said = said.strip().lower()
        if said in YES or said in NO:
            enabled = said in YES
    control = headers.get("Cache-Control")
    return enabled and not (control is not None and any(word in control.lower() for word in ("no-store", "no-cache")))


def visit(call: Call, client: Client, principal: Principal, ground: Ground, body: bytes) -> "Visit | None":
    """None where nobody asks for any of it. Raises bad_request for an Idempotency-Key that is too long."""
    once = client.headers.get("Idempotency-Key", "").strip()
    cached = wanted(client.headers, ground.snapshot.cache.enabled)
    client.step_headers = STATE["MISS" if cached else "OFF"]
    if not cached and not once:
        return None
    if len(once.encode("utf-8", "replace")) > MAX_KEY_BYTES:
        raise GatewayError("bad_request", f"The Idempotency-Key is longer than {MAX_KEY_BYTES} bytes.", param="idempotency-key")
    return Visit(call, client, principal, ground, body, cached, once)


def never(call: Call, client: Client, principal: Principal, ground: Ground, body: bytes) -> None:
    """For operations whose answers are not given again."""


class Visit:
    """``keys``: what this request leads for others, and until when its answer may be given again."""
    __slots__ = ("call", "client", "ground", "address", "raw", "cached", "once", "keys", "body", "given")

    def __init__(self, call: Call, client: Client, principal: Principal, ground: Ground, body: bytes, cached: bool,
                 once: str) -> None:
        self.call = call
        self.client = client
        self.ground = ground
        self.body = body
        self.cached = cached
        headers = client.headers
        self.address: Address = (*principal.mark, "", call.surface, call.operation, call.path_model,
                                 str(call.path_stream), client.content_type, ground.epoch,
                                 *(headers.get(name, "") for name in HEADERS))
        self.raw = raw_key(self.address, body)
        self.once = raw_key((principal.name, "idempotency"), once.encode("utf-8", "replace")) if once else b""
        self.keys: dict[bytes, float] = {}
        self.given: Answer | None = None

    async def known(self) -> bool:
        """By its Idempotency-Key or by the same bytes; True: it is answered. Raises 409 for a key that means another request."""
        if self.once and (answer := await self._find(self.once, IDEMPOTENCY_TTL_S)) is not None:
            return await self._give(answer, "idempotency")
        twin = self.ground.replays.twins.get(self.raw) if self.cached else None
        answer = self.ground.replays.answers.get(twin, self.ground.clock.wall()) if twin is not None else None
        return answer is not None and await self._give(answer, "cache")

    async def same(self, request: Request) -> bool:
        """By what it means; True: it is answered. Otherwise this request leads, or goes on for itself."""
        if not self.cached:
            return False
        large = len(self.body) > LARGE_BYTES
        key = await aside(self._key, request) if large else self._key(request)
        if key is None:
            self.cached = False
            self.client.step_headers = STATE["OFF"]
            return False
        replays = self.ground.replays
        replays.twins.put(self.raw, key)
        answer = await self._find(key, self.ground.snapshot.cache.ttl_s)
        if answer is None:
            replays.answers.statistics.misses += 1
            return False
        return await self._give(answer, "cache")

    def leave(self) -> None:
        """The request is over, whatever its end was. Synchronous; whoever waits is told."""
        if not self.keys:
            return
        replays, answer = self.ground.replays, self._answer()
        wall = self.ground.clock.wall()
        for key, ttl_s in self.keys.items():
            made = None
            if answer is not None:
                made = Answer(body=answer.body, content_type=answer.content_type, stream=answer.stream, routed=answer.routed,
                              model=answer.model, request=self.raw if key == self.once else b"", input_tokens=answer.input_tokens,
                              output_tokens=answer.output_tokens, created=wall, expires=wall + ttl_s)
                replays.put(key, made, wall)
            replays.flights.land(key, made)

    # ------------------------------------------------------------------ inside
    def _key(self, request: Request) -> bytes | None:
        """None: an answer to this is not for others. A kept response is a place in a dialogue of its own."""
        data = read(self.body)
        if data is None or (request.wire == "openai-responses"
                            and (data.get("store") is not False or data.get("previous_response_id"))):
            return None
        if self._panel(request.model):
            return None
        warm = temperature(data)
        if warm is not None and warm > self.ground.snapshot.cache.max_temperature:
            return None
        try:
            return request_key(self.address, data, request.wire)
        except (TypeError, ValueError):
            return None

    def _panel(self, model: str) -> bool:
        """Is it many who answer? Who wants several opinions wants them again."""
        try:
            return resolve(model, self.ground.catalog).fusion
        except GatewayError:
            return False                             # told later, by whoever plans the request

    async def _find(self, key: bytes, ttl_s: float) -> Answer | None:
        """What is kept, or what an identical request under way brings; None: it is this request's turn."""
        replays, wall = self.ground.replays, self.ground.clock.wall()
        answer = replays.answers.get(key, wall)
        if answer is None and replays.shelf is not None and replays.flights.get(key) is None:
            answer = await replays.fetch(key, wall)
        flight = replays.flights.get(key) if answer is None else None
        self._own(key, answer.request if answer is not None else flight.request if flight is not None else b"")
        if answer is not None:
            return answer
        if flight is not None:
            return await self._wait(flight)
        replays.flights.lead(key, self.raw if key == self.once else b"")
        self.keys[key] = ttl_s
        if self.client.tape is None:
            self.client.tape = Tape()
        return None

    async def _wait(self, flight: Flight) -> Answer | None:
        try:
            async with asyncio.timeout(self.ground.snapshot.timeouts.first_token_s):
                return await asyncio.shield(flight.landed)
        except TimeoutError:
            return None                              # the first one's client may read slowly: that is no reason to fail

    def _own(self, key: bytes, request: bytes) -> None:
        if key == self.once and request and request != self.raw:
            raise GatewayError("bad_request", "This Idempotency-Key was used for another request.", status=409,
                               param="idempotency-key", code="idempotency_key_conflict")

    async def _give(self, answer: Answer, source: str) -> bool:
        call, client, self.given = self.call, self.client, answer
        self.ground.replays.answers.hit(answer)
        call.cache = call.routed = source
        call.stream = answer.stream
        if call.request is None:                         # unread: its record names the model all the same
            call.path_model = answer.model
        client.step_headers = STATE["HIT"] if source == "cache" else client.step_headers
        client.route_headers = {"X-Routed-Via": source}
        client.committed = True
        if answer.stream:
            await client.start()
            await client.end(answer.body)
        else:
            await client.answer(answer.body, content_type=answer.content_type)
        return True

    def _answer(self) -> Answer | None:
        """What may be given again: a whole turn that ended by itself and that the client has got."""
        if self.given is not None:
            return self.given
        call, tape = self.call, self.client.tape
        if call.outcome != "ok" or call.error is not None or call.status != 200 or call.finish not in WHOLE or tape is None:
            return None
        body, usage = tape.body, call.usage
        if body is None:
            self.ground.replays.answers.statistics.too_large += 1
            return None
        return Answer(body=body, content_type=self.client.content_type if call.stream else "application/json", stream=call.stream,
                      routed=call.routed, model=call.request.model if call.request is not None else "",
                      input_tokens=usage.input if usage is not None else 0,
                      output_tokens=usage.output if usage is not None else 0)
