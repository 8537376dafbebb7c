"""A gateway with a collector: what arrives there, what upstreams are told, and that a dead collector harms nobody."""
import asyncio
import gzip

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from gateway.config.load import loads
from gateway.config.problems import ConfigError
from gateway.mock import script as say
from gateway.observe import semconv as sc
from gateway.server import compose
from tests.conftest import client_key, provider
from tests.talk import AUTH, ask

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=1"}


class Collector:
    """Takes OTLP over HTTP."""

    def __init__(self):
        self.spans, self.metrics, self.headers = [], {}, None

    async def take(self, http):
        self.headers = dict(http.headers)
        raw = await http.read()
        raw = gzip.decompress(raw) if http.headers.get("Content-Encoding") == "gzip" else raw
        if http.path == "/v1/traces":
            told = ExportTraceServiceRequest.FromString(raw)
            self.resource = {a.key: a.value.string_value for each in told.resource_spans for a in each.resource.attributes}
            self.spans += [span for each in told.resource_spans for scope in each.scope_spans for span in scope.spans]
        else:
            told = ExportMetricsServiceRequest.FromString(raw)
            self.metrics |= {m.name: m for each in told.resource_metrics for scope in each.scope_metrics for m in scope.metrics}
        return web.Response()


@pytest.fixture
async def collector(stack):
    made = Collector()
    app = web.Application()
    app.router.add_post("/{tail:.*}", made.take)
    server = TestServer(app)
    await server.start_server()
    stack.push_async_callback(server.close)
    made.url = f"http://127.0.0.1:{server.port}"
    return made


@pytest.fixture
def door(gateway, upstream):
    async def start(otel="", answer=None):
        start.up = await upstream(answer or say.reply("hello"))
        return await gateway(client_key() + provider(start.up) + f"[otel]\n{otel}\n")
    return start


def said(span):
    return {a.key: a.value.string_value or a.value.int_value for a in span.attributes}


async def test_spans_and_numbers_arrive_below_the_caller_s_span(door, collector, gateway):
    url = await door(f'endpoint = "{collector.url}"\nheaders = {{x-team = "ours"}}\nservice_name = "gw-test"')
    assert (await ask(url, headers={**AUTH, **TRACEPARENT})).status == 200
    await gateway.listener.parts.telemetry.close()
    server, client = sorted(collector.spans, key=lambda span: span.kind)
    assert (server.kind, client.kind) == (2, 3)          # https://opentelemetry.io/docs/specs/otlp/: SERVER, CLIENT
    assert server.trace_id.hex() == client.trace_id.hex() == TRACE
    assert server.parent_span_id.hex() == PARENT and client.parent_span_id == server.span_id
    assert said(server)[sc.OPERATION] == "chat" and said(server)[sc.REQUEST_MODEL] == "m" and said(client)[sc.PROVIDER] == "up"
    assert collector.resource["service.name"] == "gw-test" and collector.headers["x-team"] == "ours"
    assert sc.CLIENT_DURATION in collector.metrics and sc.SERVER_DURATION in collector.metrics
    assert "gen_ai.client.inference.usage.input_tokens" in collector.metrics
    assert "traceparent" not in door.up.requests[0].headers


async def test_no_word_of_a_client_is_an_attribute_of_a_number(door, collector, gateway):
    url = await door(f'endpoint = "{collector.url}"')
    for n in range(20):
        await ask(url, {"model": f"made-up-{n}", "messages": [{"role": "user", "content": "hi"}]})
    await gateway.listener.parts.telemetry.close()
    points = collector.metrics[sc.SERVER_DURATION].histogram.data_points
    assert len(points) == 1 and {a.value.string_value for a in points[0].attributes} == {"chat", "other", "no_model"}


async def test_what_the_caller_does_not_sample_is_not_sent(door, collector, gateway):
    url = await door(f'endpoint = "{collector.url}"')
    await ask(url, headers={**AUTH, "traceparent": f"00-{TRACE}-{PARENT}-00"})
    await gateway.listener.parts.telemetry.close()
    assert collector.spans == [] and collector.metrics


async def test_an_upstream_is_told_its_own_span_where_the_operator_says_so(door, collector, gateway):
    url = await door(f'endpoint = "{collector.url}"\npropagate = true')
    await ask(url, headers={**AUTH, **TRACEPARENT})
    await gateway.listener.parts.telemetry.close()
    client = max(collector.spans, key=lambda span: span.kind)
    sent = door.up.requests[0].headers
    assert sent["traceparent"] == f"00-{TRACE}-{client.span_id.hex()}-01" and sent["tracestate"] == "vendor=1"


async def test_without_a_collector_the_caller_s_span_is_passed_on_as_it_is(door):
    url = await door("propagate = true")
    await ask(url, headers={**AUTH, **TRACEPARENT})
    await ask(url)
    assert door.up.requests[0].headers["traceparent"] == TRACEPARENT["traceparent"]
    assert "traceparent" not in door.up.requests[1].headers


async def test_a_reload_switches_it_off_and_on(door, collector, gateway):
    url = await door(f'endpoint = "{collector.url}"')
    await ask(url)
    parts, desk = gateway.listener.parts, gateway.listener.desk
    on = parts.written
    desk.ground = compose.ground(loads(client_key() + provider(door.up)), parts)
    await ask(url)
    async with asyncio.timeout(10):
        while len(collector.spans) < 2:              # what the old exporter held is still sent
            await asyncio.sleep(0.02)
    desk.ground = compose.ground(on, parts)
    await ask(url)
    await parts.telemetry.close()
    assert len(collector.spans) == 4


def test_a_missing_extra_is_told_with_the_command_that_helps(monkeypatch):
    monkeypatch.setattr("gateway.config.check.importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError) as refused:
        loads('[otel]\nendpoint = "http://127.0.0.1:4318"\n')
    assert ("otel.endpoint", "needs a package: pip install 'gateway[otel]'; or leave it out") in refused.value.problems


@pytest.mark.parametrize("address", ["127.0.0.1:4318", "ftp://h", "http://", "http://h:x"])
def test_an_endpoint_is_an_address(address):
    with pytest.raises(ConfigError, match="otel.endpoint"):
        loads(f'[otel]\nendpoint = "{address}"\n')
