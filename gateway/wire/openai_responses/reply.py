"""How is a whole response read and written? A body of the same format is kept in everything that did not have to change.

Both ways go by the stream: a whole answer is read as the events of its turn, and written as what a stream of them ends with.
"""
from typing import Any, Final

import msgspec

from gateway.core import events as ev
from gateway.core import reply as rp
from gateway.core.errors import GatewayError
from gateway.wire import splice
from gateway.wire.base import Shown
from gateway.wire.lenient import dump, load
from gateway.wire.openai_chat.faults import fault_of
from gateway.wire.openai_responses.encode import Encoder
from gateway.wire.openai_responses.faults import fault_in
from gateway.wire.openai_responses.response import counted, kept_here
from gateway.wire.openai_responses.schema import Json
from gateway.wire.openai_responses.stream import Decoder
from gateway.wire.openai_responses.told import alike, items_by_hand

_FAILED: Final = frozenset({"failed", "cancelled"})
_UNFINISHED: Final = frozenset({"queued", "in_progress"})


# ---------------------------------------------------------------- reading
def parse_reply(raw: bytes, same: bool) -> list[ev.Event]:
    """The events of a whole answer."""
    try:
        doc, _ = load(raw)
    except ValueError:
        kind = "an HTML page" if raw.lstrip()[:1] == b"<" else "a body that is not JSON"
        raise GatewayError("bad_reply", f"The provider answered with {kind}.") from None
    if isinstance(doc, list) and len(doc) == 1:
        doc = doc[0]                                         # some relays wrap errors in an array
    if not isinstance(doc, dict):
        raise GatewayError("bad_reply", "The provider's answer is not a JSON object.")
    if doc.get("error") or str(doc.get("status")) in _FAILED:
        return [ev.Fault(fault_in(doc if doc.get("error") else {"response": doc}))]
    if not isinstance(doc.get("output"), list):
        error = fault_of(doc)
        if error is not None:
            return [ev.Fault(error)]
        raise GatewayError("bad_reply", "The provider's answer has no output.")
    if str(doc.get("status")) in _UNFINISHED and not doc["output"]:
        raise GatewayError("bad_reply", "The provider has not finished its answer.")
    return Decoder(same, "", 0).whole(doc)


# ---------------------------------------------------------------- writing
class _Item(msgspec.Struct, gc=False):
    id: str = ""


class _Envelope(msgspec.Struct, gc=False):
    """What clients rely on."""
    id: str = ""
    object: str = ""
    created_at: float = -1
    model: str = ""
    status: str = ""
    output: list[_Item] = []
    usage: Json | None = None


_envelope = msgspec.json.Decoder(_Envelope)


def build_reply(reply: rp.Reply, shown: Shown, raw: bytes | None) -> bytes:
    """The client's whole answer."""
    if raw is not None and shown.same and not shown.touched:
        untouched = _untouched(raw, shown)
        if untouched is not None:
            return untouched
    built = final_of(reply, shown)
    if raw is None or not shown.same:
        return dump(built)
    doc, _ = load(raw)
    return dump(_merged(doc, built, shown) if isinstance(doc, dict) else built)


def final_of(reply: rp.Reply, shown: Shown) -> Json:
    """The response that a stream of the same events ends with."""
    choice = reply.choices.get(0, rp.Choice())
    events: list[ev.Event] = [reply.meta, *choice.order, choice.finish or ev.Finish("stop")]
    if reply.usage is not None:
        events.append(reply.usage)
    encoder = Encoder(shown)
    encoder.encode([*events, ev.End()])
    assert encoder.final is not None
    return encoder.final


def _untouched(raw: bytes, shown: Shown) -> bytes | None:
    """The upstream's bytes with the model renamed; None where something else must be mended."""
    try:
        body = _envelope.decode(raw)
        raw.decode()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not (body.id and body.created_at >= 0 and body.model and body.status and body.object == "response"):
        return None
    if not counted(body.usage) or not all(item.id for item in body.output):
        return None
    named = raw if body.model == shown.model else splice.set_model(raw, body.model, shown.model)
    return _ours(named, shown) if named is not None and shown.kept_as else named


def _ours(raw: bytes, shown: Shown) -> bytes:
    """The answer under the name that it is kept here under; what it says stays in its own bytes."""
    top: dict[str, bytes | msgspec.Raw] = dict(splice.fields(raw))
    mine: Json = {}
    kept_here(mine, shown)
    return splice.join({**top, **{name: dump(value) for name, value in mine.items()}})


def _merged(doc: Json, built: Json, shown: Shown) -> Json:
    """The upstream's document with what the turn changed, and what was missing."""
    out: dict[str, Any] = dict(doc)
    for name in ("id", "created_at", "object"):
        if out.get(name) in (None, ""):
            out[name] = built[name]
    out["model"] = shown.model
    kept_here(out, shown)
    for name in ("status", "incomplete_details"):
        out[name] = built[name]
    if not alike(items_by_hand(out.get("output")), items_by_hand(built["output"]) or []):
        out["output"] = built["output"]
    if not counted(out.get("usage")):
        out["usage"] = built["usage"]
    return out
