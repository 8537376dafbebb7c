"""How does an Ollama answer become the events of its turn, and how is a turn written as one answer?"""
from typing import Any

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.core.reply import Choice, Reply
from gateway.wire import lenient, splice
from gateway.wire.base import Shown
from gateway.wire.lenient import dump
from gateway.wire.ollama.faults import fault_in
from gateway.wire.ollama.schema import GENERATE, STOP_IN, Json, closing, read_usage, stamp, stop_out


def parse(raw: bytes) -> list[ev.Event]:
    """Raises bad_reply for what is no answer of this format."""
    try:
        doc, _ = lenient.load(raw)
    except ValueError:
        doc = None
    if not isinstance(doc, dict):
        raise GatewayError("bad_reply", "The provider's answer is not a JSON object.")
    error = fault_in(doc)
    if error is not None:
        return [ev.Fault(error)]
    if not isinstance(doc.get("message"), dict) and not isinstance(doc.get("response"), str):
        raise GatewayError("bad_reply", "The provider's answer has no message.")
    found = events_of(doc, 0)
    if not found or not isinstance(found[-1], ev.End):
        found.append(ev.End())
    return [ev.Meta("", str(doc.get("model") or "")), *found]


def events_of(doc: Json, n_calls: int) -> list[ev.Event]:
    """What one object says, a line of a stream or a whole answer. ``n_calls``: calls that came before it."""
    message = doc.get("message")
    said: Json = message if isinstance(message, dict) else {"content": doc.get("response"), "thinking": doc.get("thinking")}
    out: list[ev.Event] = []
    if isinstance(thinking := said.get("thinking"), str) and thinking:
        out.append(ev.Reasoning(thinking))
    if isinstance(content := said.get("content"), str) and content:
        out.append(ev.Text(content))
    calls: Any = said.get("tool_calls")
    for i, call in enumerate(calls if isinstance(calls, list) else ()):
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            given = function.get("arguments")
            out.append(ev.ToolDelta(n_calls + i, str(call.get("id") or ""), str(function.get("name") or ""),
                                    given if isinstance(given, str) else dump(given or {}).decode(), whole=True))
    if doc.get("done") is True:
        reason = doc.get("done_reason")
        reason = STOP_IN.get(reason, reason) if isinstance(reason, str) and reason else "stop"
        out.append(ev.Finish("tool_calls" if reason == "stop" and (n_calls or calls) else reason))
        if (usage := read_usage(doc)) is not None:
            out.append(usage)
        out.append(ev.End())
    return out


def build(reply: Reply, shown: Shown, raw: bytes | None) -> bytes:
    """One answer; the upstream's own where nothing had to change."""
    if raw is not None and not shown.touched:
        doc, exact = lenient.load(raw)
        model = doc.get("model")
        if exact and isinstance(model, str):
            if model == shown.model:
                return raw
            if (named := splice.set_model(raw, model, shown.model)) is not None:
                return named
    choice = reply.choices.get(0) or Choice()
    finish = choice.finish.reason if choice.finish is not None else "stop"
    text = choice.text + choice.refusal
    head: Json = {"model": shown.model, "created_at": stamp(shown.created)}
    if shown.operation == GENERATE:
        said: Json = {"response": text} | ({"thinking": choice.reasoning} if choice.reasoning else {})
    else:
        message: Json = {"role": "assistant", "content": text}
        if choice.reasoning:
            message["thinking"] = choice.reasoning
        if choice.calls:
            message["tool_calls"] = [call_out(call) for call in choice.calls]
        said = {"message": message}
    last: Json = {"done": True, "done_reason": stop_out(finish)}
    if shown.operation == GENERATE:
        last["context"] = []
    return dump(head | said | last | closing(reply.usage, shown.elapsed()))


def call_out(call: ev.ToolCall) -> Json:
    """A call; its arguments are an object here."""
    if call.kind == "custom":
        value: Any = {"input": call.arguments}
    else:
        try:
            value, _ = lenient.load(call.arguments.encode("utf-8", "surrogatepass"))
        except ValueError:
            value = None
    if not isinstance(value, dict):
        value = {"arguments": call.arguments} if call.arguments.strip() else {}
    return {"id": call.id, "function": {"index": call.index, "name": call.name, "arguments": value}}


def build_load(model: str, operation: str, created: float, unload: bool) -> bytes:
    """The answer to a request that asks nothing."""
    said: Json = {"response": ""} if operation == GENERATE else {"message": {"role": "assistant", "content": ""}}
    return dump({"model": model, "created_at": stamp(created)} | said
                | {"done": True, "done_reason": "unload" if unload else "load"})
