"""How does a whole Messages answer become the events of its turn, and how is a turn written as one answer?"""
from typing import Any, Final

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.core.reply import Choice, Reply
from gateway.wire import lenient, splice
from gateway.wire.anthropic.encoder import message_id, unique
from gateway.wire.anthropic.faults import fault_of
from gateway.wire.anthropic.schema import (
    COPIED,
    NAME,
    STOP_IN,
    Json,
    arguments,
    call_input,
    dump,
    load,
    read_usage,
    safe_id,
    stop_out,
    write_usage,
)
from gateway.wire.base import Shown


# ---------------------------------------------------------------- upstream's answer -> events
def parse(raw: bytes, same: bool) -> list[ev.Event]:
    """Raises bad_reply for what is no answer of this format."""
    try:
        body = load(raw)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise GatewayError("bad_reply", "The provider's answer is not a JSON object.")
    error = fault_of(body)
    if error is not None:
        return [ev.Fault(error)]
    content = body.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise GatewayError("bad_reply", "The provider's answer has no content.")
    out: list[ev.Event] = [ev.Meta(str(body.get("id") or ""), str(body.get("model") or ""))]
    for i, block in enumerate(content):
        if isinstance(block, dict):
            out += _READ.get(str(block.get("type")), _opaque)(block, i, same)
    reason, sequence = body.get("stop_reason"), body.get("stop_sequence")
    if isinstance(reason, str) and reason:
        out.append(ev.Finish(STOP_IN.get(reason, reason), 0, None, sequence if isinstance(sequence, str) else None))
    if isinstance(body.get("usage"), dict):
        out.append(read_usage(body["usage"]))
    out.append(ev.End())
    return out


def _text(block: Json, i: int, same: bool) -> list[ev.Event]:
    text, citations = block.get("text"), block.get("citations")
    out: list[ev.Event] = []
    for citation in citations if isinstance(citations, list) else ():
        doc = {"type": "content_block_delta", "index": i, "delta": {"type": "citations_delta", "citation": citation}}
        out.append(ev.Opaque(NAME, "citations_delta", doc))
    if out or i:
        # Citations belong to one block, and blocks of text do not melt into each other.
        start = {"type": "content_block_start", "index": i, "content_block": {"type": "text", "text": ""}}
        out.insert(0, ev.Opaque(NAME, "content_block_start", start))
    return [*out, ev.Text(text)] if isinstance(text, str) and text else out


def _thinking(block: Json, i: int, same: bool) -> list[ev.Event]:
    text, signature = block.get("thinking"), block.get("signature")
    signature = signature if isinstance(signature, str) and signature else None
    return [ev.Reasoning(text if isinstance(text, str) else "", None, 0, signature)]


def _redacted(block: Json, i: int, same: bool) -> list[ev.Event]:
    return [ev.Reasoning("", None, 0, None, str(block.get("data") or ""))]


def _call(block: Json, i: int, same: bool) -> list[ev.Event]:
    given = block.get("input")
    extra = {key: value for key, value in block.items() if key not in ("type", "id", "name", "input")} if same else None
    return [ev.ToolDelta(i, str(block.get("id") or ""), str(block.get("name") or ""), arguments(given),
                         whole=not isinstance(given, (dict, type(None))), extra=extra or None)]


def _opaque(block: Json, i: int, same: bool) -> list[ev.Event]:
    kind = str(block.get("type"))
    return [ev.Opaque(NAME, kind, block, counts=same and kind != "fallback")]


_READ: Final = {"text": _text, "thinking": _thinking, "redacted_thinking": _redacted, "tool_use": _call}


# ---------------------------------------------------------------- events -> the client's answer
def build(reply: Reply, shown: Shown, raw: bytes | None) -> bytes:
    """One message. With ``raw`` everything that did not have to change is the upstream's."""
    choice = reply.choices.get(0) or Choice()
    if raw is not None and (kept := _kept(reply, choice, shown, raw)) is not None:
        return kept
    finish = choice.finish or ev.Finish("tool_calls" if choice.calls else "stop")
    reason = "refusal" if choice.refusal and finish.reason == "stop" else finish.reason
    usage = reply.usage or ev.Usage(estimated=True)
    return dump({"id": message_id(reply.meta.id, shown), "type": "message", "role": "assistant", "model": shown.model,
                 "content": _Blocks(shown.same).of(choice), "stop_reason": stop_out(reason, finish.stop_sequence),
                 "stop_sequence": finish.stop_sequence, "usage": write_usage(usage, shown.same)})


def _kept(reply: Reply, choice: Choice, shown: Shown, raw: bytes) -> bytes | None:
    """The upstream's own body, changed where the turn differs from it; None where it is no message."""
    body, exact = lenient.load(raw)
    content = body.get("content") if isinstance(body, dict) else None
    if not isinstance(content, list):
        return None
    changes: Json = {}
    blocks = _blocks(choice, content, shown)
    if blocks != content:
        changes["content"] = blocks
    finish = choice.finish
    said = body.get("stop_reason")
    if finish is not None and (not isinstance(said, str) or said in COPIED or STOP_IN.get(said, said) != finish.reason):
        changes["stop_reason"] = stop_out(finish.reason, finish.stop_sequence)
    usage = reply.usage
    if usage is not None and (usage.estimated or not isinstance(body.get("usage"), dict)):
        changes["usage"] = write_usage(usage, True)
    for key, value in (("id", message_id(reply.meta.id, shown)), ("type", "message"), ("role", "assistant")):
        if not body.get(key):
            changes[key] = value
    model = body.get("model")
    if not changes and exact and isinstance(model, str):
        if model == shown.model:
            return raw
        if (renamed := splice.set_model(raw, model, shown.model)) is not None:
            return renamed
    return dump(body | changes | {"model": shown.model})


def _blocks(choice: Choice, content: list[Any], shown: Shown) -> list[Any]:
    """The upstream's blocks with the turn's calls; anew if the text is another one."""
    texts = [block for block in content if isinstance(block, dict) and block.get("type") == "text"]
    if "".join([str(block.get("text") or "") for block in texts]) != choice.text:
        return _Blocks(True).of(choice)
    calls = iter(choice.calls)
    used: set[str] = set()
    out = []
    for block in content:
        if not isinstance(block, dict) or block.get("type") != "tool_use":
            out.append(block)
        elif (call := next(calls, None)) is not None:
            out.append(block | _use(call, used))
    return out + [_use(call, used) for call in calls]


def _use(call: ev.ToolCall, used: set[str]) -> Json:
    return {"type": "tool_use", "id": unique(safe_id(call.id), used), "name": call.name,
            "input": call_input(call.arguments, call.kind)}


class _Blocks:
    """Joins a turn's events into content blocks, in their order."""

    def __init__(self, same: bool) -> None:
        self._same = same
        self._out: list[Json] = []
        self._used: set[str] = set()
        self._json: dict[int, str] = {}          # inputs of server-run tools that come in pieces
        self._open: dict[int, Json] = {}
        self._sealed = True                      # the last block takes no more text

    def of(self, choice: Choice) -> list[Json]:
        for event in choice.order:
            _JOIN[type(event)](self, event)  # type: ignore[operator, index]
        return [block for block in self._out if block.get("type") != "text" or block.get("text")]

    def _last(self, kind: str, empty: Json) -> Json:
        if self._sealed or not self._out or self._out[-1]["type"] != kind:
            self._out.append(empty)
        self._sealed = False
        return self._out[-1]

    def _text(self, event: ev.Text) -> None:
        self._last("text", {"type": "text", "text": ""})["text"] += event.text

    def _refusal(self, event: ev.Refusal) -> None:
        self._text(ev.Text(event.text))

    def _reasoning(self, event: ev.Reasoning) -> None:
        if event.redacted is not None:
            if self._same:
                self._out.append({"type": "redacted_thinking", "data": event.redacted})
            return
        block = self._last("thinking", {"type": "thinking", "thinking": "", "signature": ""})
        block["thinking"] += event.text
        if event.signature and self._same:
            block["signature"] = event.signature
            self._sealed = True

    def _call(self, event: ev.ToolCall) -> None:
        block = _use(event, self._used)
        self._out.append(block | event.extra if event.extra and self._same else block)

    def _opaque(self, event: ev.Opaque) -> None:
        doc = event.payload
        if event.wire != NAME or not self._same or not isinstance(doc, dict):
            return
        kind, index = doc.get("type"), int(doc.get("index") or 0)
        if kind == "content_block_start":
            self._out.append(dict(doc["content_block"]))
            self._open[index] = self._out[-1]
            self._sealed = False
        elif kind == "content_block_delta":
            self._delta(doc["delta"], index)
        elif kind == "content_block_stop":
            block = self._open.pop(index, None)
            if block is not None and index in self._json:
                block["input"] = call_input(self._json.pop(index))
            self._sealed = True
        else:
            self._out.append(doc)

    def _delta(self, delta: Json, index: int) -> None:
        """A piece of a block that has no events of its own. https://docs.anthropic.com/en/docs/build-with-claude/compaction"""
        block = self._open.get(index)
        if block is None:
            return
        if delta.get("type") == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
        elif delta.get("type") == "input_json_delta":
            self._json[index] = self._json.get(index, "") + str(delta.get("partial_json") or "")
        else:
            for key, value in delta.items():
                if key != "type":
                    was = block.get(key)
                    block[key] = was + value if isinstance(was, str) and isinstance(value, str) else value


_JOIN: Final = {ev.Text: _Blocks._text, ev.Refusal: _Blocks._refusal, ev.Reasoning: _Blocks._reasoning,
                ev.ToolCall: _Blocks._call, ev.Opaque: _Blocks._opaque}


def build_count(n: int) -> bytes:
    """The answer of count_tokens."""
    return dump({"input_tokens": n})
