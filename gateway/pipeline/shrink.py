"""Is less sent than was asked? The request's older texts made smaller, by the operator's mode and the caller's header.

Only the upstream gets the smaller body: what is kept of a dialogue, and what names a session, is what the client said. Whatever goes
wrong here, the request is sent as it came.
"""
import logging
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from gateway.compress import plan, wires
from gateway.compress.filters import builtin
from gateway.compress.plan import Aim, Outcome
from gateway.core.call import Call
from gateway.core.errors import GatewayError
from gateway.core.request import Request
from gateway.pipeline.aside import alone
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground
from gateway.tokens.estimate import CHARS_PER_TOKEN, estimate_request
from gateway.wire import WIRES
from gateway.wire.openai_responses.schema import Asked

log = logging.getLogger("gateway.compress")

HEADER: Final = "X-FreeLLM-Compress"
LARGE_BYTES: Final = 32_768                      # more is done off the loop
REST_AFTER_S: Final = 0.001                      # of work in a thread, the loop gets its turn
REST_S: Final = 0.0001


async def shrunk(call: Call, client: Client, request: Request, ground: Ground, *, count: bool = True) -> Request:
    """The request as it is to be sent; the very same where nothing is saved. Tells the client by a header. ``count``: in the sums."""
    settings = ground.snapshot.compression
    if request.operation == "completions" or request.wire not in wires.READERS:
        return request
    tokens = estimate_request(request, ground.calibration.factor(request.model))
    aim = plan.aimed(client.headers.get(HEADER, ""), settings.mode, tokens, settings.auto_trigger_tokens, settings.target_tokens)
    saved = 0
    if aim.mode != "off":
        large = len(request.raw) > LARGE_BYTES
        work = _work(call, request, aim, ground.snapshot.filters)
        made, outcome = await alone(work, Breather()) if large else work(_breathless)
        saved, request = outcome.saved_tokens, made
        if count:
            ground.tally.add(outcome)
    client.step_headers = {**(client.step_headers or {}), HEADER: f"{aim.mode}; saved~={saved}"}
    return request


async def counted(call: Call, client: Client, request: Request, ground: Ground) -> Request:
    """The request as it would be sent, for surfaces that count its tokens."""
    return await shrunk(call, client, request, ground, count=False) if ground.snapshot.compression.mode != "off" else request


def _work(call: Call, request: Request, aim: Aim, filters: tuple[Any, ...]) -> Callable[[Callable[[], None]], tuple[Request, Outcome]]:
    def work(rest: Callable[[], None]) -> tuple[Request, Outcome]:
        try:
            raw, outcome = smaller(request.wire, request.raw, aim, filters, rest)
            return (reparsed(call, request, raw), outcome) if outcome.changed else (request, outcome)
        except (GatewayError, ValueError, RecursionError, msgspec.DecodeError):
            log.exception("request %s cannot be made smaller", call.id)
            return request, Outcome(mode=aim.mode)
    return work


def smaller(wire: str, raw: bytes, aim: Aim, filters: tuple[Any, ...], rest: Callable[[], None]) -> tuple[bytes, Outcome]:
    """A body with smaller texts, and what was done to it."""
    talk = wires.read(wire, raw)
    if talk is None:
        return raw, Outcome(mode=aim.mode)
    rest()
    talk.filters = filters
    outcome = plan.compress(talk, aim, rest)
    return (wires.write(raw, outcome.changed) if outcome.changed else raw), outcome


def reparsed(call: Call, request: Request, raw: bytes) -> Request:
    """The request that these bytes are, with what was found out about the one that they come from."""
    made = WIRES[request.wire].parse_request(raw, request.operation, call.path_model, call.path_stream)
    made.model = request.model                       # which may be another name than the body's
    made.session_hint, made.fetched, made.clean = request.session_hint, request.fetched, made.clean and request.clean
    old = request.body
    if isinstance(old, Asked) and isinstance(made.body, Asked):
        new = made.body
        new.previous_response_id, new.replayed, new.makers, new.store = old.previous_response_id, old.replayed, old.makers, old.store
    return made


class Breather:
    """In a thread: lets the loop have the interpreter often, since it would else wait for its switch interval each time."""
    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last = time.perf_counter()

    def __call__(self) -> None:
        if time.perf_counter() - self.last > REST_AFTER_S:
            time.sleep(REST_S)
            self.last = time.perf_counter()


def _breathless() -> None: ...


# ---------------------------------------------------------------- for the operator
def status(ground: Ground) -> dict[str, Any]:
    """What is set, and what it has brought since the start."""
    tally, settings = ground.tally, ground.snapshot.compression
    sums = msgspec.to_builtins(tally)
    done = max(tally.requests, 1)
    return {"config": msgspec.to_builtins(settings), "filters": [one.name for one in ground.snapshot.filters], **sums,
            "savings_percent": round(100 * (1 - tally.chars_after / tally.chars_before), 1) if tally.chars_before else 0.0,
            "avg_ms": round(tally.ms / done, 3)}


def preview(body: bytes, wire: str, mode: str, ground: Ground) -> dict[str, Any]:
    """What would become of a body, engine by engine, with the gate's verdicts. For a thread: it may read rule packs.

    Raises bad_request."""
    if mode not in plan.MODES or mode == "off":
        raise GatewayError("bad_request", "The mode must be lossless, standard or aggressive.", param="mode")
    if wire not in wires.READERS:
        raise GatewayError("bad_request", f"The wire must be one of {', '.join(wires.READERS)}.", param="wire")
    request = WIRES[wire].parse_request(body, "chat", "preview", False)
    settings = ground.snapshot.compression
    aim = Aim(mode, estimate_request(request), settings.target_tokens)
    raw, outcome = smaller(wire, request.raw, aim, ground.snapshot.filters or builtin(), Breather())
    return {"mode": mode, "chars_before": outcome.chars_before, "chars_after": outcome.chars_after,
            "tokens_before": outcome.chars_before // CHARS_PER_TOKEN, "saved_tokens": outcome.saved_tokens, "ms": round(outcome.ms, 3),
            "stages": msgspec.to_builtins(outcome.stages), "body": raw.decode()}
