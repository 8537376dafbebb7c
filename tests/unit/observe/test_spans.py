"""Spans of a finished call: names of the conventions, our times, no contents."""
import pytest

from gateway.core.trace import Trace
from gateway.observe import semconv as sc
from gateway.observe.spans import Upstream, spans, upstream
from gateway.providers.registry import Provider
from tests.unit.observe.calls import attempt, call

TRACE = Trace(trace_id="0" * 31 + "1", span_id="00000000000000aa", parent_id="00000000000000bb")
AT = {"a": Upstream("openai", "api.openai.com", 443)}


def test_a_request_is_a_server_span_with_a_client_span_for_each_attempt():
    hops = attempt(error="rate_limited", end=10.5), attempt("b", start=10.5, end=11.0, upstream_id="x-1", first_token_at=10.8)
    root, first, second = spans(call(*hops, committed_at=10.8, routed="b/m", finish="stop"), TRACE, AT)
    assert (root.server, first.server, second.server) == (True, False, False)
    assert root.parent_id == "00000000000000bb" and first.parent_id == second.parent_id == root.span_id == "00000000000000aa"
    assert (root.name, first.name) == ("chat m", "chat m")
    assert (root.started, root.ended, first.ended, second.started) == (1_000.0, 1_001.0, 1_000.5, 1_000.5)
    assert [(event.name, event.at) for event in root.events] == [(sc.EVENT_FAILOVER, 1_000.5), (sc.EVENT_COMMIT, pytest.approx(1_000.8))]
    assert first.failure and first.attributes[sc.ERROR] == "rate_limited" and not root.failure and sc.ERROR not in root.attributes
    assert first.attributes[sc.PROVIDER] == "openai" and first.attributes[sc.SERVER_ADDRESS] == "api.openai.com"
    assert second.attributes[sc.PROVIDER] == "b" and second.attributes[sc.RESPONSE_ID] == "x-1"
    assert second.attributes[sc.RESPONSE_FINISH] == ("stop",) and second.attributes[sc.RESPONSE_FIRST_CHUNK] == pytest.approx(0.3)


def test_counts_are_inclusive_as_the_conventions_want():
    root = spans(call(attempt()), TRACE, AT)[0]
    assert (root.attributes[sc.USAGE_INPUT], root.attributes[sc.USAGE_CACHE_READ], root.attributes[sc.USAGE_REASONING]) == (100, 30, 5)


def test_an_upstream_that_was_told_its_span_gets_that_one():
    assert spans(call(attempt(span_id="00000000000000cc")), TRACE, AT)[1].span_id == "00000000000000cc"


def test_a_refusal_has_no_attempts_and_is_the_caller_s_error():
    (root,) = spans(call(outcome="refused", error="no_model", asked="x" * 5_000), TRACE, AT)
    assert root.attributes[sc.ERROR] == "no_model" and not root.failure and len(root.name) < 400


@pytest.mark.parametrize(("url", "name"), [
    ("https://api.openai.com/v1", "openai"), ("https://me.openai.azure.com/openai", "azure.ai.openai"),
    ("https://generativelanguage.googleapis.com/v1beta", "gcp.gemini"), ("https://europe-west4-aiplatform.googleapis.com/v1", "gcp.vertex_ai"),
    ("https://bedrock-runtime.eu-west-1.amazonaws.com", "aws.bedrock"), ("https://api.x.ai/v1", "x_ai"), ("https://notx.ai/v1", "mine"),
    ("http://127.0.0.1:8080/v1", "mine")])
def test_upstreams_go_by_the_names_of_the_conventions(url, name):
    assert upstream(Provider(id="mine", name="Mine", base_url=url)).name == name


def test_the_port_is_told_or_follows_from_the_scheme():
    assert upstream(Provider(id="a", name="a", base_url="http://h:81/v1")) == Upstream("a", "h", 81)
    assert upstream(Provider(id="a", name="a", base_url="https://h/v1")).port == 443
