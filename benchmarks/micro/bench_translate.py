"""What does it cost that a client and an upstream speak different formats? One request without the network for each pair.

A stream of 20 chunks that come one by one, from an upstream of one format to a client of another, beside the pairs of one format
(which are to cost about what chat costs); and a conversation of 100 KB made into a request of each format (limit: 3 ms).
``python -m benchmarks.micro translate`` prints the table; ``python benchmarks/micro/bench_translate.py messages openai-chat``
profiles one pair.
"""
import asyncio
import cProfile
import json
import pstats
import sys
import time
from pathlib import Path

import orjson
import uvloop

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.micro.bench_request import CALLS, CONFIG, OPENING, RUNS, TEXTS, Deaf, Http, Reply, Silent
from benchmarks.micro.timing import timed
from gateway.config.load import loads
from gateway.core import events as ev
from gateway.core.call import Call
from gateway.pipeline.serve import serve
from gateway.server import compose
from gateway.server.run import settle_memory
from gateway.surfaces.routes import ROUTES
from gateway.wire import WIRES
from gateway.wire.base import Outbound, Shown
from gateway.wire.sse import END

N = 20
MODEL = "bench-model"
SURFACES = {door.name: door for door in ROUTES if door.name in ("chat", "messages", "responses")}
SAME = {"chat": "openai-chat", "messages": "anthropic", "responses": "openai-responses"}
FOREIGN = [("messages", "openai-chat"), ("chat", "anthropic"), ("responses", "openai-chat"), ("chat", "openai-responses"),
           ("messages", "openai-responses"), ("responses", "anthropic"), ("chat", "gemini"), ("messages", "gemini")]
HELLO = "hello, how are you?"
ASKED = {"chat": {"messages": [{"role": "user", "content": HELLO}]}, "responses": {"input": HELLO, "store": False},
         "messages": {"max_tokens": 512, "messages": [{"role": "user", "content": HELLO}]}}
ARGUMENTS = json.dumps({"p0": "x" * 80})
CONVERSATION_MS = 3.0


def asked(surface: str) -> bytes:
    return json.dumps({"model": MODEL, "temperature": 0.7, "stream": True, **ASKED[surface]}).encode()


def stream(wire: str) -> list[bytes]:
    """The same turn as an upstream of this format sends it, an event at a time."""
    request = WIRES["openai-chat"].parse_request(asked("chat"))
    encoder = WIRES[wire].encoder(Shown(model=MODEL, request=request, same=False, id="up1", created=1_700_000_000))
    texts: list[ev.Event] = [ev.Text(f"~{i}".ljust(16, "x")) for i in range(N)]
    if wire == "openai-chat":
        return [OPENING, *TEXTS[:N], encoder.encode([ev.Finish("stop"), ev.Usage(input=10, output=20, total=30), ev.End()])]
    first, *rest = [encoder.encode([event]) for event in texts]
    last = encoder.encode([ev.Finish("stop"), ev.Usage(input=10, output=20, total=30), ev.End()])
    opening, _, text = first[:-len(END)].rpartition(END)
    return [opening + END if opening else b"", text + END, *rest, last]


class Upstream:
    """A transport that answers at once."""

    def __init__(self, reads: list[bytes]) -> None:
        self._reads = [read for read in reads if read]

    async def send(self, out):
        return Reply(self._reads, "text/event-stream")


async def prepared(surface: str, wire: str):
    """Gives the coroutine function that answers one request of this surface by an upstream of this format."""
    config = CONFIG.replace('wire = "openai-chat"', f'wire = "{wire}"')
    desk, _ = compose.build(loads(config, {}), journal=Silent())
    ground, door, body = desk.ground, SURFACES[surface], asked(surface)
    ground.transports = dict.fromkeys(ground.transports, Upstream(stream(wire)))
    headers = {"Server": "gateway", "X-Request-ID": "req_1", "request-id": "req_1"}

    async def once() -> Call:
        call = Call(id="req_1", surface=door.name, wire=door.wire, operation=door.operation, started=ground.clock.now(),
                    wall=ground.clock.wall())
        await serve(call, Deaf(Http(body), call, WIRES[door.wire], headers, None), ground)
        await asyncio.sleep(0)
        return call

    assert (await once()).outcome == "ok"
    return once


async def measured(surface: str, wire: str) -> float:
    once = await prepared(surface, wire)
    settle_memory()
    best = float("inf")
    for _ in range(RUNS):
        began = time.process_time_ns()
        for _ in range(CALLS):
            await once()
        best = min(best, (time.process_time_ns() - began) / CALLS / 1e3)
    return best


async def profiled(surface: str, wire: str) -> None:
    once = await prepared(surface, wire)
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(1_000):
        await once()
    profile.disable()
    pstats.Stats(profile).sort_stats("tottime").print_stats(40)


# ---------------------------------------------------------------- conversations
def conversation() -> bytes:
    """100 KB as a coding agent sends them: instructions, tools, many turns with calls and long results."""
    properties = {f"p{j}": {"type": "string", "description": "What to do it with."} for j in range(4)}
    tools = [{"type": "function", "function": {"name": f"tool_{i}", "description": "Does a thing. " * 20, "parameters": {
        "type": "object", "properties": properties}}} for i in range(15)]
    messages = [{"role": "system", "content": "You are an agent. " * 200}]
    for i in range(40):
        call = {"id": f"call_{i}", "type": "function", "function": {"name": f"tool_{i % 15}", "arguments": ARGUMENTS}}
        messages += [{"role": "user", "content": [{"type": "text", "text": f"Step {i}. " * 20}]},
                     {"role": "assistant", "content": "I look. " * 10, "tool_calls": [call]},
                     {"role": "tool", "tool_call_id": f"call_{i}", "content": "line of a file\n" * 100}]
    return json.dumps({"model": MODEL, "stream": True, "max_tokens": 900, "tools": tools, "messages": messages}).encode()


def bodies() -> dict[str, bytes]:
    """The conversation as each surface says it."""
    chat = WIRES["openai-chat"]
    request = chat.parse_request(conversation())
    request.conversation, request.wire = chat.open(request), "another"
    to = Outbound(model=MODEL, provider="p", stream=True)
    return {surface: WIRES[wire].build_request(request, to) for surface, wire in SAME.items()}


def translated(raw: bytes, wire: str, to_wire: str) -> None:
    request = WIRES[wire].parse_request(raw)
    request.conversation = WIRES[wire].open(request)
    WIRES[to_wire].build_request(request, Outbound(model=MODEL, provider="p", stream=True))


def main() -> list[tuple[object, ...]]:
    unit = TEXTS[0][6:-2]
    rows: list[tuple[object, ...]] = [("orjson.loads of one frame", timed(lambda: orjson.loads(unit)))]
    for surface, wire in [*SAME.items(), *FOREIGN]:
        rows.append((f"20 chunks: {surface} over {wire}", uvloop.run(measured(surface, wire))))
    for surface, raw in bodies().items():
        for to_wire in ("openai-chat", "openai-responses", "anthropic", "gemini"):
            if to_wire != SAME[surface]:
                rows.append((f"{len(raw) // 1000} KB asked of {surface}, said to {to_wire}",
                             timed(lambda raw=raw, surface=surface, to_wire=to_wire: translated(raw, SAME[surface], to_wire), 20),
                             CONVERSATION_MS * 1e3))
    return rows


if __name__ == "__main__":
    uvloop.run(profiled(sys.argv[1], sys.argv[2]))
