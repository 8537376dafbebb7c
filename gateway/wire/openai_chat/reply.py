"""How is a whole chat answer read and written? A body of the same format is kept in everything that did not have to change."""
from typing import Annotated, Any, Final

import msgspec

from gateway.core import events as ev
from gateway.core import reply as rp
from gateway.core.clock import SystemClock
from gateway.core.errors import GatewayError
from gateway.wire import splice
from gateway.wire.base import Shown
from gateway.wire.lenient import dump, is_utf8, load, whole_text
from gateway.wire.openai_chat.encode import call_json, chat_id, finish_for, legacy_calls
from gateway.wire.openai_chat.faults import ended_in_failure, fault_of
from gateway.wire.openai_chat.frames import COUNTS, REASONING, WIRE, calls_of, pieces_of
from gateway.wire.openai_chat.schema import Json, finish_word, read_usage, says_failed, sound, write_usage

_SAID: Final = frozenset({"role", "content", "refusal", "tool_calls", "function_call", *REASONING})
_Nothing = Annotated[list[Any], msgspec.Meta(max_length=0)] | None
_PLAIN_WORDS: Final = frozenset({"stop", "length", "content_filter"})
_WORDS: Final = ("stop", "length", "tool_calls", "content_filter", "function_call")


# ---------------------------------------------------------------- reading
def parse_reply(raw: bytes, same: bool) -> list[ev.Event]:
    """The events of a whole answer."""
    plain = _plain(raw, same)
    if plain is not None:
        return plain
    try:
        doc, _ = load(raw)
    except ValueError:
        kind = "an HTML page" if raw.lstrip()[:1] == b"<" else "a body that is not JSON"
        raise GatewayError("bad_reply", f"The provider answered with {kind}.") from None
    if isinstance(doc, list) and len(doc) == 1:
        doc = doc[0]                                         # some relays wrap errors in an array
    if not isinstance(doc, dict):
        raise GatewayError("bad_reply", "The provider's answer is not a JSON object.")
    error = fault_of(doc)
    if error is not None:
        return [ev.Fault(error)]
    choices = doc.get("choices")
    if not isinstance(choices, list):
        raise GatewayError("bad_reply", "The provider's answer has no choices.")
    out: list[ev.Event] = [_meta(doc)]
    for position, choice in enumerate(choices):
        if isinstance(choice, dict):
            _choice(choice, position, out)
            if type(out[-1]) is ev.Fault:
                return out
    usage = doc.get("usage")
    if not usage and isinstance(bag := doc.get("x_groq"), dict):
        usage = bag.get("usage")
    if isinstance(usage, dict) and usage:
        out.append(read_usage(usage))
    out.append(ev.End())
    return out


class _Said(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A message that says a text and nothing else."""
    role: str
    content: str
    refusal: None = None
    annotations: _Nothing = None
    tool_calls: _Nothing = None
    function_call: None = None
    audio: None = None
    reasoning: None = None
    reasoning_content: None = None


class _Answer(msgspec.Struct, gc=False):
    index: int
    message: _Said
    finish_reason: str


class _Whole(msgspec.Struct, gc=False):
    choices: Annotated[list[_Answer], msgspec.Meta(min_length=1, max_length=1)]
    usage: Json
    id: str = ""
    object: str = ""
    created: int = -1
    model: str = ""
    error: None = None


_decode_whole = msgspec.json.Decoder(_Whole).decode


def _plain(raw: bytes, same: bool) -> list[ev.Event] | None:
    """What nearly all answers are: one text, a reason, the counts. Anything else is read as a dict."""
    try:
        body = _decode_whole(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
    answer = body.choices[0]
    text, reason = answer.message.content, answer.finish_reason
    if not text or answer.index or reason not in _PLAIN_WORDS or not body.usage or not sound(body.usage) \
            or not is_utf8(raw):
        return None
    passes = bool(same and body.id and body.created >= 0 and body.model and body.object == "chat.completion"
                  and answer.message.role == "assistant")
    return [ev.Meta(body.id, body.model, max(body.created, 0), None, passes), ev.Text(text), ev.Finish(reason),
            read_usage(body.usage), ev.End()]


def _meta(doc: Json) -> ev.Meta:
    made, model, created = doc.get("id"), doc.get("model"), doc.get("created")
    return ev.Meta(str(made) if isinstance(made, (str, int)) else "", model if isinstance(model, str) else "",
                   int(created) if isinstance(created, (int, float)) else 0)


def _choice(choice: Json, position: int, out: list[ev.Event]) -> None:
    index = choice.get("index")
    index = index if isinstance(index, int) and not isinstance(index, bool) and index >= 0 else position
    native = choice.get("finish_reason")
    if says_failed(native):
        out.append(ev.Fault(ended_in_failure(native)))
        return
    message = choice.get("message") or choice.get("delta")
    if not isinstance(message, dict):
        message = {"content": choice.get("text")}
    used: set[str] = set()
    for event, members, _ in pieces_of(message, index):
        used.update(members)
        event.text = whole_text(event.text)
        out.append(event)
    calls = list(calls_of(message, index))
    for place, call in enumerate(calls):
        call.index = place                       # each entry is a call of its own, whatever index it repeats
    out += calls
    for key, value in message.items():
        if value and key not in _SAID and key not in used:
            out.append(ev.Opaque(WIRE, key, value, None, index, key in COUNTS))
    # A body is complete by its framing: where it says no reason it simply ended.
    out.append(ev.Finish(finish_word(native) or ("tool_calls" if calls else "stop"), index))


# ---------------------------------------------------------------- writing
class _Message(msgspec.Struct, gc=False):
    role: str = ""


class _Alternative(msgspec.Struct, gc=False):
    index: int = -1
    message: _Message | None = None
    finish_reason: str = ""


class _Envelope(msgspec.Struct, gc=False):
    """What OpenAI's client libraries rely on."""
    id: str = ""
    object: str = ""
    created: int = -1
    model: str = ""
    choices: list[_Alternative] = []
    usage: Json | None = None


_envelope = msgspec.json.Decoder(_Envelope)


def build_reply(reply: rp.Reply, shown: Shown, raw: bytes | None) -> bytes:
    """The client's whole answer."""
    if raw is None or not shown.same:
        return dump(built(reply, shown))
    if not shown.touched:
        untouched = _untouched(raw, reply, shown)
        if untouched is not None:
            return untouched
    doc, _ = load(raw)
    if not isinstance(doc, dict) or not isinstance(doc.get("choices"), list):
        return dump(built(reply, shown))
    _mend(doc, reply, shown)
    return dump(doc)


def _untouched(raw: bytes, reply: rp.Reply, shown: Shown) -> bytes | None:
    """The upstream's bytes with the model renamed; None where something else must be mended."""
    try:
        body = _envelope.decode(raw)
        raw.decode()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not (body.id and body.created >= 0 and body.model and body.object == "chat.completion" and body.choices):
        return None
    if reply.usage is not None and (body.usage is None or body.usage != reply.usage.native):
        return None
    for position, choice in enumerate(body.choices):
        if choice.index != position or choice.message is None or choice.message.role != "assistant":
            return None
        if choice.finish_reason not in _WORDS:
            return None
    if body.model == shown.model:
        return raw
    return splice.set_model(raw, body.model, shown.model)


def _mend(doc: Json, reply: rp.Reply, shown: Shown) -> None:
    """The upstream's document with what the turn changed, and what was missing."""
    if not (isinstance(doc.get("id"), str) and doc["id"]):
        doc["id"] = chat_id(shown)
    doc["object"] = "chat.completion"
    if not isinstance(doc.get("created"), int):
        doc["created"] = _created(shown)
    doc["model"] = shown.model
    by_index: dict[int, Json] = {}
    for position, choice in enumerate(doc["choices"]):
        if isinstance(choice, dict):
            if not isinstance(choice.get("index"), int):
                choice["index"] = position
            by_index[choice["index"]] = choice
    for index, said in sorted(reply.choices.items()):
        if index not in by_index:
            doc["choices"].append(alternative(index, said, shown))
            continue
        _mend_choice(by_index[index], said, shown)
    told = doc.get("usage")
    if reply.usage is not None and (not isinstance(told, dict) or not told or reply.usage.estimated or not sound(told)):
        doc["usage"] = write_usage(reply.usage, True)


def _mend_choice(choice: Json, said: rp.Choice, shown: Shown) -> None:
    message = choice.get("message")
    if not isinstance(message, dict):
        message = choice.pop("delta", None)
        choice["message"] = message = message if isinstance(message, dict) else {}
    message["role"] = "assistant"
    before = list(pieces_of(message, 0))
    if "".join([e.text for e, _, _ in before if isinstance(e, ev.Text)]) != said.text or "content" not in message:
        message["content"] = said.text or (None if said.calls else "")
    if "".join([e.text for e, _, _ in before if isinstance(e, ev.Reasoning)]) != said.reasoning:
        message["reasoning_content"] = said.reasoning
    _calls(message, said.calls, shown)
    if said.finish is not None and finish_word(choice.get("finish_reason")) != said.finish.reason \
            or choice.get("finish_reason") not in _WORDS:
        choice["finish_reason"] = finish_for(said.finish.reason if said.finish else "stop", "function_call" in message)


def _calls(message: Json, calls: list[ev.ToolCall], shown: Shown) -> None:
    if isinstance(message.get("function_call"), dict) and len(calls) == 1:
        message["function_call"] = {"name": calls[0].name, "arguments": calls[0].arguments}
    elif calls:
        message["tool_calls"] = [call_json(call, call.arguments, True) for call in calls]
    elif message.get("tool_calls"):
        del message["tool_calls"]


def built(reply: rp.Reply, shown: Shown) -> Json:
    """An answer from nothing but the events."""
    own = shown.same and reply.meta.id
    doc: Json = {"id": reply.meta.id if own else chat_id(shown), "object": "chat.completion",
                 "created": (reply.meta.created if own else 0) or _created(shown), "model": shown.model,
                 "choices": [alternative(index, said, shown) for index, said in sorted(reply.choices.items())]}
    if reply.usage is not None:
        doc["usage"] = write_usage(reply.usage, shown.same)
    return doc


def alternative(index: int, said: rp.Choice, shown: Shown) -> Json:
    """One choice, anew."""
    legacy = legacy_calls(shown.request.body) and len(said.calls) == 1
    message: Json = {"role": "assistant", "content": said.text or (None if said.calls or said.refusal else ""),
                     "refusal": said.refusal or None}
    if said.reasoning:
        message["reasoning_content"] = said.reasoning
    if legacy:
        message["function_call"] = {"name": said.calls[0].name, "arguments": said.calls[0].arguments}
    elif said.calls:
        message["tool_calls"] = [call_json(call, call.arguments, shown.same) for call in said.calls]
    for opaque in said.opaque:
        if opaque.wire == WIRE and opaque.payload is not None:
            message[opaque.kind] = _joined(message.get(opaque.kind), opaque.payload)
    reason = said.finish.reason if said.finish is not None else "stop"
    return {"index": index, "message": message, "logprobs": None, "finish_reason": finish_for(reason, legacy)}


def _joined(before: Any, more: Any) -> Any:
    """Pieces of a stream, joined as client libraries do: texts and lists grow, objects by member."""
    if isinstance(before, dict) and isinstance(more, dict):
        return {**before, **{key: _joined(before.get(key), value) for key, value in more.items()}}
    if isinstance(before, list) and isinstance(more, list):
        return before + more
    if isinstance(before, str) and isinstance(more, str) and before != more:
        return before + more
    return before if more is None else more


def _created(shown: Shown) -> int:
    return shown.created or int(SystemClock.wall())
