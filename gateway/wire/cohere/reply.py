"""How does a whole answer of Cohere's become the events of its turn? The plan before calls is thinking."""
from typing import Any

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.core.redact import redact
from gateway.wire.cohere.schema import NAME, ending, read_usage, string
from gateway.wire.lenient import dump, load


def parse(raw: bytes) -> list[ev.Event]:
    """Raises bad_reply for what is no answer of this format."""
    try:
        body, _ = load(raw)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise GatewayError("bad_reply", "The provider's answer is not a JSON object.")
    message = body.get("message")
    if isinstance(message, str):
        return [ev.Fault(GatewayError("in_band", redact(message)))]
    if not isinstance(message, dict):
        raise GatewayError("bad_reply", "The provider's answer has no message.")
    out: list[ev.Event] = [ev.Meta(string(body.get("id")))]
    if plan := string(message.get("tool_plan")):
        out.append(ev.Reasoning(plan))
    _content(message.get("content"), out)
    calls = message.get("tool_calls")
    for i, call in enumerate(calls if isinstance(calls, list) else ()):
        out += call_of(i, call)
    if message.get("citations"):
        out.append(ev.Opaque(NAME, "citations", message["citations"]))
    if not ending(body.get("finish_reason"), body.get("error"), out):
        return out
    if (usage := read_usage(body.get("usage"))) is not None:
        out.append(usage)
    out.append(ev.End())
    return out


def _content(content: Any, out: list[ev.Event]) -> None:
    if isinstance(content, str) and content:
        out.append(ev.Text(content))
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            if thought := string(block.get("thinking")):
                out.append(ev.Reasoning(thought))
            elif text := string(block.get("text")):
                out.append(ev.Text(text))


def call_of(index: int, call: Any) -> list[ev.Event]:
    """A call, or a piece of one: also what its first frame says."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return []
    given = function.get("arguments")
    text = given if isinstance(given, str) else dump(given).decode() if given else ""
    return [ev.ToolDelta(index, string(call.get("id")), string(function.get("name")), text)]
