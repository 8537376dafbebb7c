"""Does an upstream learn which trace it is part of? Only where the operator says so (``otel.propagate``)."""
from collections.abc import Mapping

from gateway.core.trace import span_id
from gateway.pipeline.hop import Hop


def carried(x: Hop, headers: Mapping[str, str]) -> Mapping[str, str]:
    """The headers of an attempt, with its place in the trace: below its own span, or below the caller's where we send none."""
    trace, otel = x.call.trace, x.ground.snapshot.otel
    if trace is None or not otel.propagate:
        return headers
    if otel.endpoint and otel.traces:
        x.attempt.span_id = span_id()
        return {**headers, **trace.headers(x.attempt.span_id)}
    return {**headers, **trace.headers(trace.parent_id)} if trace.parent_id else headers
