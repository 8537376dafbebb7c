"""Which trace does a request belong to? W3C Trace Context (https://www.w3.org/TR/trace-context/): read, begun, carried on."""
import os
import re
from typing import Final

import msgspec

MAX_STATE: Final = 512
_PARENT: Final = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?").fullmatch
_STATE: Final = re.compile(r"[\x20-\x7e\t]*").fullmatch
_RANDOM: Final = float(1 << 56)                  # the last seven bytes of a trace id are random: all services decide alike by them


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """One request's place in a trace. ``span_id`` is the request's own; ``parent_id`` the caller's, "" = the trace begins here."""
    trace_id: str
    span_id: str
    parent_id: str = ""
    state: str = ""
    sampled: bool = True

    def headers(self, span_id: str) -> dict[str, str]:
        """What tells the next service, as a child of this span."""
        made = {"traceparent": f"00-{self.trace_id}-{span_id}-0{int(self.sampled)}"}
        if self.state:
            made["tracestate"] = self.state
        return made


def begun(parent: str, state: str, share: float) -> Trace:
    """The trace of a request with these headers; what is malformed is as if it had not been sent. ``share`` of those that begin here
    are sampled; else the caller has decided."""
    found = _PARENT(parent.strip())
    if found is None or (found[1] == "00" and found[5]):
        trace_id = os.urandom(16).hex()
        return Trace(trace_id=trace_id, span_id=span_id(), sampled=int(trace_id[-14:], 16) < share * _RANDOM)
    kept = state.strip() if len(state) <= MAX_STATE and _STATE(state) else ""
    return Trace(trace_id=found[2], span_id=span_id(), parent_id=found[3], state=kept, sampled=bool(int(found[4], 16) & 1))


def span_id() -> str:
    return os.urandom(8).hex()
