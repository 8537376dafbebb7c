"""Does one target answer now? A tiny question by one of its keys, outside of any client's request; nothing is booked."""
import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.core.redact import Scrubber, mask
from gateway.providers.classify import classify, refine
from gateway.routing.places import Candidate
from gateway.upstream.transport import Outgoing
from gateway.wire import WIRES
from gateway.wire.change import changed

if TYPE_CHECKING:
    from gateway.pipeline.ground import Ground

TIMEOUT_S: Final = 30.0
ANSWER_BYTES: Final = 1 << 20
ERROR_BYTES: Final = 65_536
SHOWN: Final = 200
MAX_TOKENS: Final = 64                           # enough for models that think first
_QUESTION: Final = msgspec.json.encode({"model": "probe", "max_tokens": MAX_TOKENS, "stream": False, "messages": [
    {"role": "user", "content": "Answer with the single word OK."}]})


class Probed(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it. ``account``: its label, never the key. ``text``: how the answer begins."""
    target: str
    account: str
    ok: bool
    took_ms: float
    status: int = 0
    text: str = ""
    kind: str = ""
    message: str = ""


async def probe(candidate: Candidate, ground: "Ground", timeout_s: float = TIMEOUT_S) -> Probed:
    """Never raises but for cancellation."""
    began, status = ground.clock.now(), [0]
    facts = {"target": candidate.target.label, "account": candidate.account.label or f"key{candidate.account.ordinal}"}
    text, error = "", None
    try:
        async with asyncio.timeout(timeout_s):
            text = await _asked(candidate, ground, status)
    except TimeoutError:
        error = GatewayError("timeout", f"No answer within {timeout_s:g} s.")
    except GatewayError as failed:
        error = failed
    took_ms = round((ground.clock.now() - began) * 1000, 1)
    if error is None:
        return Probed(**facts, ok=True, took_ms=took_ms, status=status[0], text=text[:SHOWN])
    return Probed(**facts, ok=False, took_ms=took_ms, status=status[0], kind=error.kind,
                  message=mask(error.message, ground.snapshot.secrets)[:SHOWN])


async def _asked(candidate: Candidate, ground: "Ground", status: list[int]) -> str:
    """The text of the answer. Raises GatewayError: what the provider said, or why nothing could be asked."""
    lane, chat = ground.lane(candidate), WIRES["openai-chat"]
    request = chat.parse_request(_QUESTION)
    if lane.wire.name != chat.name:
        chat.open(request)
    body = lane.wire.build_request(request, lane.to_whole)
    if lane.changes:
        body = changed(body, lane.changes)
    out = Outgoing(method="POST", url=lane.url(request, lane.to_whole), body=body, headers=lane.headers_whole,
                   timeouts=lane.timeouts, proxy=lane.proxy)
    reply = await lane.transport.send(out)
    provider = candidate.target.provider
    try:
        status[0] = reply.status
        if reply.status >= 400:
            raise classify(reply.status, reply.headers, await reply.read(ERROR_BYTES), provider)
        answer = await reply.read(ANSWER_BYTES)
    finally:
        if not reply.complete:
            reply.close()
    events = lane.wire.parse_reply(Scrubber(lane.secrets).replace(answer) if lane.secrets else answer, False)
    for event in events:
        if isinstance(event, ev.Fault):
            raise refine(event.error, provider)
    said = "".join([event.text for event in events if isinstance(event, ev.Text)])
    if not said and not any(isinstance(event, (ev.Reasoning, ev.Finish)) for event in events):
        raise GatewayError("empty", "The provider answered without words.")
    return said
