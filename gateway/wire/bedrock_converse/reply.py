"""How does a whole Converse answer become the events of its turn?"""
from collections.abc import Callable
from typing import Any, Final

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.wire.bedrock_converse.schema import MALFORMED, NAME, STOP_IN, Json, fault, read_usage
from gateway.wire.lenient import dump, load


def parse(raw: bytes) -> list[ev.Event]:
    """Raises bad_reply for what is no answer of this format."""
    try:
        body, _ = load(raw)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise GatewayError("bad_reply", "The provider's answer is not a JSON object.")
    output = body.get("output")
    message = output.get("message") if isinstance(output, dict) else None
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list):
        said = body.get("message") or body.get("Message")
        if isinstance(said, str):
            return [ev.Fault(fault(str(body.get("__type") or "").rpartition("#")[2], said))]
        raise GatewayError("bad_reply", "The provider's answer has no content.")
    out: list[ev.Event] = [ev.Meta()]
    for i, block in enumerate(content):
        for name, read in _READ.items() if isinstance(block, dict) else ():
            if name in block:
                read(block[name], i, out)
                break
    ending(body.get("stopReason"), out)
    if isinstance(body.get("usage"), dict):
        out.append(read_usage(body["usage"]))
    if type(out[-1]) is not ev.Fault:
        out.append(ev.End())
    return out


def ending(reason: Any, out: list[ev.Event]) -> None:
    """Why the turn ended, in our words; an output that the service itself calls malformed is a failure."""
    if not isinstance(reason, str) or not reason:
        return
    if reason in MALFORMED:
        out.append(ev.Fault(fault(reason, "The model's output was malformed.")))
    else:
        out.append(ev.Finish(STOP_IN.get(reason, reason)))


def _text(text: Any, i: int, out: list[ev.Event]) -> None:
    if isinstance(text, str) and text:
        out.append(ev.Text(text))


def _tool_use(use: Any, i: int, out: list[ev.Event]) -> None:
    if not isinstance(use, dict):
        return
    if served(use):
        out.append(ev.Opaque(NAME, "server_tool_use", use))
        return
    given = use.get("input")
    out.append(ev.ToolDelta(i, str(use.get("toolUseId") or ""), str(use.get("name") or ""),
                            given if isinstance(given, str) else dump(given or {}).decode(), whole=True))


def served(use: Json) -> bool:
    """A tool that the service runs itself: https://docs.aws.amazon.com/nova/latest/nova2-userguide/using-tools.html"""
    return use.get("type") == "server_tool_use"


def _tool_result(result: Any, i: int, out: list[ev.Event]) -> None:
    out.append(ev.Opaque(NAME, "tool_result", result))


def _reasoning(said: Any, i: int, out: list[ev.Event]) -> None:
    if not isinstance(said, dict):
        return
    text = said.get("reasoningText")
    if isinstance(text, dict):
        out.append(ev.Reasoning(_string(text.get("text")), None, 0, _string(text.get("signature")) or None))
    elif said.get("redactedContent"):
        out.append(ev.Reasoning("", None, 0, None, _string(said["redactedContent"])))


def _citations(said: Any, i: int, out: list[ev.Event]) -> None:
    """Text with its sources beside it."""
    content = said.get("content") if isinstance(said, dict) else None
    for piece in content if isinstance(content, list) else ():
        if isinstance(piece, dict):
            _text(piece.get("text"), i, out)
    if isinstance(said, dict) and said.get("citations"):
        out.append(ev.Opaque(NAME, "citations", said["citations"]))


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


_READ: Final[dict[str, Callable[[Any, int, list[ev.Event]], None]]] = {
    "toolUse": _tool_use, "toolResult": _tool_result, "reasoningContent": _reasoning, "citationsContent": _citations,
    "text": _text,
}
