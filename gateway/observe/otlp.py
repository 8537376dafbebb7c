"""How do spans and numbers reach a collector? The OpenTelemetry SDK: imported only where ``otel.endpoint`` is set.

Spans are made whole from what is known at the end, with ids of our own: no tracer, no context, nothing while a request runs.
"""
from collections.abc import Callable, Mapping
from typing import Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk import trace as sdk
from opentelemetry.sdk.metrics import AlwaysOffExemplarFilter, MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from gateway import __version__
from gateway.config.schema import Otel
from gateway.core.call import Attempt, Call
from gateway.core.trace import Trace
from gateway.observe import semconv as sc
from gateway.observe.families import OTHER
from gateway.observe.spans import Attributes, Span, Upstream, spans

SCOPE: Final = InstrumentationScope("gateway", __version__)
TIMEOUT_S: Final = 5.0
QUEUE: Final = 4_096
EVERY_MS: Final = 15_000
_GOOD: Final = Status(StatusCode.UNSET)


class Exporter:
    """One collector."""

    def __init__(self, settings: Otel, spans_to: SpanExporter | None = None) -> None:
        base = settings.endpoint.rstrip("/")
        self._resource = Resource.create({sc.SERVICE: settings.service_name, sc.SERVICE_VERSION: __version__, **settings.attributes})
        self._spans = BatchSpanProcessor(
            spans_to or OTLPSpanExporter(f"{base}/v1/traces", headers=settings.headers, timeout=TIMEOUT_S),
            max_queue_size=QUEUE) if settings.traces else None
        self._numbers = Numbers(settings, self._resource) if settings.metrics else None

    def add(self, call: Call, upstreams: Mapping[str, Upstream], canonical: Callable[[str], str]) -> None:
        trace: Trace | None = call.trace
        if self._spans is not None and trace is not None and trace.sampled:
            for span in spans(call, trace, upstreams):
                self._spans.on_end(self._made(span, trace))
        if self._numbers is not None:
            self._numbers.add(call, upstreams, canonical)

    def close(self) -> None:
        """Send what is left. Blocks; for a thread."""
        if self._spans is not None:
            self._spans.shutdown()  # type: ignore[no-untyped-call]
        if self._numbers is not None:
            self._numbers.close()

    def _made(self, span: Span, trace: Trace) -> sdk.ReadableSpan:
        parent = context(trace, span.parent_id, remote=span.server) if span.parent_id else None
        return sdk.ReadableSpan(
            span.name, context=context(trace, span.span_id, remote=False), parent=parent, resource=self._resource,
            attributes=span.attributes, events=[sdk.Event(event.name, event.attributes, nanos(event.at)) for event in span.events],
            kind=SpanKind.SERVER if span.server else SpanKind.CLIENT,
            status=Status(StatusCode.ERROR, span.failure) if span.failure else _GOOD, start_time=nanos(span.started),
            end_time=nanos(span.ended), instrumentation_scope=SCOPE)


def context(trace: Trace, span_id: str, *, remote: bool) -> SpanContext:
    state = TraceState.from_header([trace.state]) if trace.state else None
    return SpanContext(int(trace.trace_id, 16), int(span_id, 16), remote, TraceFlags(int(trace.sampled)), state)


def nanos(at: float) -> int:
    return int(at * 1e9)


class Numbers:
    """The metrics of the conventions. No attribute is a client's own word."""

    def __init__(self, settings: Otel, resource: Resource, reader: PeriodicExportingMetricReader | None = None) -> None:
        exporter = OTLPMetricExporter(f"{settings.endpoint.rstrip('/')}/v1/metrics", headers=settings.headers, timeout=TIMEOUT_S)
        self._provider = MeterProvider([reader or PeriodicExportingMetricReader(exporter, EVERY_MS, TIMEOUT_S * 1000)], resource,
                                       AlwaysOffExemplarFilter(), shutdown_on_exit=False)
        meter = self._provider.get_meter(SCOPE.name, SCOPE.version)
        self._histograms = {name: meter.create_histogram(name, "s", says, explicit_bucket_boundaries_advisory=sc.SECONDS)
                            for name, says in sc.HISTOGRAMS.items()}
        self._counters = {name: meter.create_counter(name, "{token}") for name in sc.COUNTERS}

    def add(self, call: Call, upstreams: Mapping[str, Upstream], canonical: Callable[[str], str]) -> None:
        operation = sc.OPERATIONS.get(call.operation, call.operation)
        for attempt in call.attempts:
            self._tried(attempt, operation, upstreams.get(attempt.provider))
        if call.role:
            return
        last = call.attempts[-1] if call.attempts else None
        asked = call.request.model if call.request is not None else ""
        said: Attributes = {sc.OPERATION: operation, sc.REQUEST_MODEL: (asked and canonical(asked)) or OTHER}
        if last is not None:
            said[sc.PROVIDER] = _name(last, upstreams.get(last.provider))
        if call.error is not None:
            said[sc.ERROR] = call.error.kind
        self._histograms[sc.SERVER_DURATION].record(call.ended - call.started, said)
        if call.stream and call.first_token_at:
            self._histograms[sc.SERVER_FIRST_TOKEN].record(call.first_token_at - call.started, said)

    def _tried(self, attempt: Attempt, operation: str, at: Upstream | None) -> None:
        said: Attributes = {sc.OPERATION: operation, sc.PROVIDER: _name(attempt, at), sc.REQUEST_MODEL: attempt.model}
        if at is not None:
            said |= {sc.SERVER_ADDRESS: at.address, sc.SERVER_PORT: at.port}
        usage = attempt.usage
        if usage is not None:
            for name, field in sc.COUNTERS.items():
                if n := getattr(usage, field):
                    self._counters[name].add(n, said)
        if attempt.error is not None:
            said = {**said, sc.ERROR: attempt.error.kind}
        self._histograms[sc.CLIENT_DURATION].record(max(attempt.ended - attempt.started, 0.0), said)
        if attempt.first_token_at:
            self._histograms[sc.CLIENT_FIRST_CHUNK].record(attempt.first_token_at - attempt.started, said)

    def close(self) -> None:
        self._provider.shutdown(TIMEOUT_S * 1000)


def _name(attempt: Attempt, at: Upstream | None) -> str:
    return at.name if at is not None else attempt.provider
