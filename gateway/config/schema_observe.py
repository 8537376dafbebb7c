"""What may stand in the tables that say who is told of what happens: metrics, traces, webhooks?"""
from typing import Annotated, Literal

from msgspec import Meta

from gateway.config.tables import Share, Table, doc
from gateway.core.secret import Secret

Event = Literal["request.failed", "provider.down", "provider.recovered", "budget.reached", "test"]


class Metrics(Table, frozen=True):
    """Prometheus."""
    enabled: Annotated[bool, doc("Count, and serve /metrics.")] = True
    key: Annotated[Secret, doc("Bearer token of the scraper, who needs one unless it is on this machine; without it, a client key. "
                               "The key of [admin] is as good.")] = Secret("")


class Otel(Table, frozen=True):
    """OpenTelemetry, by OTLP over HTTP (extra `otel`)."""
    endpoint: Annotated[str, doc("Address of the collector, such as `http://127.0.0.1:4318`; empty = off.")] = ""
    headers: Annotated[dict[str, str], doc("Headers for the collector.")] = {}
    traces: Annotated[bool, doc("Send a span for each request and each attempt.")] = True
    metrics: Annotated[bool, doc("Send the metrics of the GenAI conventions.")] = True
    sample: Annotated[Share, doc("Share of requests that are traced, where the caller's traceparent does not decide.")] = 1.0
    service_name: Annotated[str, Meta(min_length=1, max_length=200), doc("Name of this service.")] = "gateway"
    attributes: Annotated[dict[str, str], doc('More attributes of the resource: `{"deployment.environment.name" = "prod"}`.')] = {}
    propagate: Annotated[bool, doc("Send traceparent and tracestate on to upstreams.")] = False


class Webhook(Table, frozen=True):
    """An address that is told of events."""
    url: Annotated[Secret, doc("Where JSON is posted to.")]
    secret: Annotated[Secret, doc("Signs what is posted: X-Gateway-Signature is HMAC-SHA256 of timestamp, dot and body.")] = Secret("")
    events: Annotated[tuple[Event, ...], doc("Which ones; none = all.")] = ()
    allow_private: Annotated[bool, doc("The address may be one of this machine or a private network.")] = False
