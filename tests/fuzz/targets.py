"""What must bear anything? Every reader of what others wrote: bodies, streams, answers, errors, headers, configurations, both HTTP parsers.

``run(data)`` gives the outcome in a few words, or raises GatewayError, which is an outcome too; anything else is a finding.
"""
import asyncio
import json
import tomllib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from multidict import CIMultiDict

from gateway.admin import gate
from gateway.config.load import ConfigError, loads
from gateway.core.errors import GatewayError
from gateway.core.reply import fold
from gateway.core.request import Request
from gateway.core.secret import Secret
from gateway.core.trace import begun
from gateway.policy.access import browser_guard, is_loopback
from gateway.policy.keys import KeyRing
from gateway.providers.classify import classify, refine
from gateway.providers.registry import Account, Provider
from gateway.stream.turn import Rules, Turn
from gateway.surfaces.desk import cors, preflight
from gateway.upstream.guard import outgoing, returned
from gateway.wire import WIRES
from gateway.wire.base import Outbound, Shown
from gateway.wire.bounds import crowded, spelled
from gateway.wire.embeddings import CLIENTS
from gateway.wire.sse import Splitter
from tests.acceptance.wires import SHAPES
from tests.arch.source import ROOT
from tests.fuzz.door import CONVERSATIONS, door
from tests.fuzz.engine import dice_of, pieces
from tests.fuzz.lanes import MODELS, lanes
from tests.property.test_h1 import heard

GOLDEN = ROOT / "tests" / "golden" / "matrix"
MAX_FRAME = 1 << 20
# (wire, operation) of every body that is parsed for a turn
BODIES = {"chat": ("openai-chat", "chat"), "completions": ("openai-chat", "completions"), "responses": ("openai-responses", "chat"),
          "messages": ("anthropic", "chat"), "count_tokens": ("anthropic", "count_tokens"), "gemini": ("gemini", "chat"),
          "ollama": ("ollama", "chat"), "generate": ("ollama", "generate")}
CLIENT_WIRES = ("openai-chat", "openai-responses", "anthropic", "gemini", "ollama")
CALL = {"name": "look", "arguments": '{"at": "this"}'}
TOOLS: dict[str, Any] = {"look": {"type": "object", "properties": {"at": {"type": "string"}, "n": {"type": "integer"}}, "required": ["at"]}}


class Target(msgspec.Struct, frozen=True):
    """``share`` of the inputs of a run."""
    seeds: Sequence[bytes]
    run: Callable[[bytes], str]
    share: float


def to(wire: str, stream: bool) -> Outbound:
    return Outbound(model="m", provider="p", stream=stream, max_output=4_096)


# ------------------------------------------------------------------ what clients send
def body(wire: str, operation: str) -> Callable[[bytes], str]:
    """Parsed, opened, and told to every upstream."""
    def run(data: bytes) -> str:
        if not spelled(data):
            return "not UTF-8"
        if wrong := crowded(data):
            return f"crowded {wrong[1][:30]}"
        request = client_said(WIRES[wire].parse_request(data, operation, "m" if wire == "gemini" else "", None))
        if operation == "count_tokens":
            return "counted"
        outcomes = []
        for name, upstream in WIRES.items():
            form = to(name, request.stream)
            try:
                if request.conversation is None and request.wire != name:
                    request.conversation = WIRES[wire].open(request)
                upstream.upstream_path(request, form)
                json.loads(upstream.build_request(request, form))
                outcomes.append("+")
            except GatewayError as error:
                assert error.status < 500, error
                outcomes.append(error.kind)
        return " ".join(outcomes)

    def client_said(request: Request) -> Request:
        assert isinstance(request.model, str) and isinstance(request.stream, bool) and request.n >= 1
        return request

    def guarded(data: bytes) -> str:
        try:
            return run(data)
        except GatewayError as error:
            assert 400 <= error.status < 500, error
            WIRES[wire].render_error(error, operation)
            raise
    return guarded


def embedding(operation: str) -> Callable[[bytes], str]:
    def run(data: bytes) -> str:
        if crowded(data):
            return "crowded"
        return f"{len(CLIENTS[operation].parse(data).inputs) > 1}"
    return run


# ------------------------------------------------------------------ what upstreams send
def asked_by(name: str, stream: bool) -> Request:
    """A request of a surface that declares a tool."""
    path = GOLDEN / "asked" / f"{ {'openai-chat': 'chat', 'openai-responses': 'responses', 'anthropic': 'messages'}.get(name, name)}.json"
    doc = json.loads(path.read_text(encoding="utf-8").replace("MODEL", "m"))
    if name != "gemini":
        doc["stream"] = stream
    return WIRES[name].parse_request(json.dumps(doc).encode(), "chat", "m" if name == "gemini" else "", stream if name == "gemini" else None)


ASKED = {(name, stream): asked_by(name, stream) for name in CLIENT_WIRES for stream in (True, False)}


def sound(client: str, written: bytes) -> None:
    """Events that any reader finds again: nothing that an upstream says ends one of ours or begins another."""
    if not WIRES[client].content_type.startswith("text/event-stream"):
        for line in written.splitlines():
            json.loads(line or b"null")
        return
    for name, data in Splitter(1 << 22).feed(written):
        doc = json.loads(data) if data != b"[DONE]" else {}
        assert name is None or name == doc.get("type", name), (name, data)


def answer(wire: str, stream: bool) -> Callable[[bytes], str]:
    """Read, judged as a turn and written to a client."""
    def run(data: bytes) -> str:
        dice = dice_of(data)
        client = dice.choice(CLIENT_WIRES)
        asked = ASKED[client, stream]
        shown = Shown(model="m", request=asked, same=client == wire, id="x1", created=1)
        turn = Turn(Rules(tools=TOOLS | asked.tools, stream=stream, tool_calls=dice.choice(("whole", "live")),
                          reasoning=dice.choice(("hold", "live"))), 0.0)
        events = []
        if stream:
            decoder = WIRES[wire].decoder(client == wire, "m", MAX_FRAME)
            for piece in pieces(data, dice):
                events += turn.feed(decoder.feed(piece), 1.0)
                if turn.done:
                    break
            if not turn.done:
                events += turn.feed(decoder.close(), 2.0)
        else:
            events += turn.feed(WIRES[wire].parse_reply(data, client == wire), 1.0)
        events += turn.eof(3.0)
        if turn.fault is not None and not turn.committed:
            raise turn.fault
        if stream:
            written = WIRES[client].encoder(shown).encode(events)
            sound(client, written)
        else:
            shown.touched = turn.touched
            json.loads(WIRES[client].build_reply(fold(events), shown, data if client == wire else None))
        return f"{client} {turn.finish} {turn.mode} {turn.touched} {turn.fault.kind if turn.fault else ''}"
    return run


PROVIDER = Provider(id="p", name="p", wire="openai-chat", base_url="http://p/v1", auth="bearer",
                    accounts=(Account(ordinal=1, key=Secret("sk-fuzz-123456789")),), models={})


def failure(data: bytes) -> str:
    """An error status with headers and a body: the first line is the status, then headers, then whatever."""
    head, _, rest = data.partition(b"\n\n")
    lines = head.decode("latin-1").split("\n")
    status = int(lines[0]) if len(lines[0]) == 3 and lines[0].isascii() and lines[0].isdecimal() and 400 <= int(lines[0]) < 600 else 500
    error = classify(status, CIMultiDict(parted(lines[1:])), rest, PROVIDER, wall=1_780_000_000.0)
    assert len(error.message) < 2_000 and "sk-fuzz-123456789" not in error.message
    assert error.retry_after_s is None or error.retry_after_s >= 0
    refine(GatewayError("in_band", error.message), PROVIDER)
    for wire in CLIENT_WIRES:
        json.loads(WIRES[wire].render_error(error))
    return f"{status} {error.kind} {error.retry_after_s is None}"


def parted(lines: Sequence[str]) -> list[tuple[str, str]]:
    return [(name.strip(), value.strip()) for line in lines for name, colon, value in [line.partition(":")] if colon and name.strip()]


RING = KeyRing()
RING.configure(loads('[[auth.keys]]\nname = "one"\nkey = "gw-fuzz-key"\n', {}).keys)


def headers(data: bytes) -> str:
    """Everything that looks at a client's headers."""
    found = CIMultiDict(parted(data.decode("utf-8", "surrogateescape").split("\n")))
    try:
        who = RING.authenticate(found, found.get("key")).name
    except GatewayError as error:
        assert "gw-fuzz" not in error.message
        who = error.kind
    refused = browser_guard(found, "POST", ("https://ok.example",))
    trace = begun(found.get("traceparent", ""), found.get("tracestate", ""), 0.5)
    told = {**cors(found, ("https://ok.example",)), **preflight(found, ("*",), ["POST"]), **returned(found)}
    assert not any(c in value for value in told.values() for c in "\r\n")
    gate.token_of(found)
    is_loopback(found.get("Host", ""))
    try:
        sent = outgoing({"User-Agent": "gateway"}, found, stream=True)
        assert not any(c in value for value in sent.values() for c in "\r\n\0") and "cookie" not in {name.lower() for name in sent}
    except GatewayError as error:
        assert error.status == 400
    return f"{who} {refused.code if refused else ''} {trace.sampled if hasattr(trace, 'sampled') else ''}"


def config(data: bytes) -> str:
    """A whole configuration; nothing of a secret's value is told."""
    try:
        snapshot = loads(data.decode("utf-8", "replace"), {"A_KEY": "sk-env-123456789"})
    except ConfigError as error:
        assert error.problems and "sk-env" not in repr(error.problems)
        return "refused " + " ".join(sorted({path.partition("[")[0] for path, _ in error.problems}))[:120]
    return f"good {len(snapshot.providers)}"


def client(data: bytes) -> str:
    """What our own HTTP client makes of an answer."""
    dice = dice_of(data)
    (status, _, got, failed), conn, wire = asyncio.run(heard(pieces(data, dice) or [b""], dice.random() < 0.5, dice.choice(("POST", "HEAD"))))
    assert failed in (None, "transport", "truncated", "waiting") and not conn._pool.busy
    return f"{status} {failed} {bool(got)}"


# ------------------------------------------------------------------ seeds
def asked(name: str) -> bytes:
    return (GOLDEN / "asked" / f"{name}.json").read_bytes().replace(b"MODEL", b"m")


def streams(wire: str) -> list[bytes]:
    found = [shape.stream for shape in SHAPES.values() if shape.wire == wire]
    return found + [path.read_bytes() for path in sorted(GOLDEN.glob(f"answers/{wire}.*s*")) if path.suffix in (".sse", ".ndjson")]


def wholes(wire: str) -> list[bytes]:
    found = [shape.whole for shape in SHAPES.values() if shape.wire == wire]
    return found + [path.read_bytes() for path in sorted(GOLDEN.glob(f"answers/{wire}.json"))]


def dump(doc: Any) -> bytes:
    return json.dumps(doc).encode()


def bodies(name: str) -> list[bytes]:
    say = [{"role": "user", "content": "hi"}]
    more = {"completions": {"model": "m", "prompt": "hi", "suffix": "x", "n": 1}, "generate": {"model": "m", "prompt": "hi", "images": []},
            "count_tokens": {"model": "m", "messages": say}}
    if name in more:
        return [dump(more[name])]
    schema = {"type": "json_schema", "json_schema": {"name": "s", "strict": True, "schema": TOOLS["look"]}}
    beside = {"chat": {"model": "m", "messages": [{"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": CALL}]},
                                                  {"role": "tool", "tool_call_id": "c", "content": "it"}], "response_format": schema}}
    return [asked(name), *([dump(beside[name])] if name in beside else [])]


README = (ROOT / "README.md").read_text(encoding="utf-8")
CONFIGS = [block.encode() for block in README.split("```toml\n")[1:] for block in [block.partition("```")[0]] if tomllib.loads(block)]
REPLIES = [b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
           b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 429 Slow\r\nRetry-After: 3\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
           b"HTTP/1.0 200 OK\r\nServer: x\r\n\r\nto the end", b"HTTP/1.1 204 Gone\r\nKeep-Alive: timeout=5\r\n\r\n",
           b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2;a=b\r\nhi\r\n0\r\nX: 1\r\n\r\n"]
HEADERS = [b"Host: localhost:8788\nAuthorization: Bearer gw-fuzz-key\nContent-Type: application/json\nOrigin: https://ok.example",
           b"Host: [::1]\nx-api-key: gw-no\nCookie: a=b; gateway_session=x\nanthropic-beta: a, b\nSec-Fetch-Site: same-origin",
           b"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\ntracestate: a=b\nX-Forwarded-For: 1.2.3.4\nkey: gw-fuzz-key",
           b"Access-Control-Request-Headers: authorization\nOrigin: null\nContent-Type: text/plain; charset=\"x\"\nHost: 127.0.0.1.evil.example"]
FAILURES = [b"429\nRetry-After: 7\nx-ratelimit-reset-requests: 1m3s\n\n" + dump({"error": {"message": "Please try again in 6m12.5s", "code": "rate_limited"}}),
            b"400\n\n" + dump({"error": {"message": "maximum context length is 8192 tokens, you sent 9000", "param": "messages"}}),
            b"503\nretry-after: Wed, 21 Oct 2026 07:28:00 GMT\n\n<html><title>503</title>", b"401\n\nsk-fuzz-123456789 is wrong",
            b"429\n\n" + dump([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [{"retryDelay": "13s"}]}}])]

TARGETS: dict[str, Target] = {
    **{f"body-{name}": Target(bodies(name), body(*which), 5) for name, which in BODIES.items()},
    **{f"embed-{name}": Target([dump({"model": "m", "input": ["a", [1, 2]], "content": {"parts": [{"text": "x"}]}})], embedding(name), 1)
       for name in CLIENTS},
    **{f"stream-{wire}": Target(streams(wire), answer(wire, True), 4) for wire in WIRES},
    **{f"whole-{wire}": Target(wholes(wire), answer(wire, False), 2) for wire in WIRES},
    **{f"lanes-{wire}": Target(streams(wire), lanes(wire), 2) for wire in MODELS},
    "failure": Target(FAILURES, failure, 6),
    "headers": Target(HEADERS, headers, 10),
    "config": Target(CONFIGS, config, 2),
    "client": Target(REPLIES, client, 6),
    "door": Target(list(CONVERSATIONS.values()), door, 6),
}
