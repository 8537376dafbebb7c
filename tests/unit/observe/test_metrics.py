"""What is counted, what a scrape says of it, and that no client can make it grow."""
import msgspec
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics

from gateway.observe.families import FAMILIES, Dump, merged, render
from gateway.observe.tallies import MAX_ROWS, Tallies
from tests.unit.observe.calls import attempt, call, read

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def counted(*calls, canonical=lambda name: name if name == "m" else ""):
    tallies = Tallies()
    tallies.canonical = canonical
    for one in calls:
        tallies.add(one)
    return tallies


def samples(tallies):
    return read(render(tallies.dump())[1].decode())


def test_a_request_is_counted_by_who_answered_and_how_it_ended():
    found = samples(counted(call(attempt(upstream_s=0.9)), call(attempt(error="timeout"), outcome="failed", error="timeout")))
    assert found["gateway_requests_total", "chat", "m", "a", "ok"] == 1
    assert found["gateway_requests_total", "chat", "m", "a", "failed"] == 1
    assert found["gateway_attempts_total", "m", "a", "timeout"] == 1


def test_time_is_split_into_upstreams_and_ours():
    found = samples(counted(call(attempt(upstream_s=0.75))))
    assert found["gateway_request_seconds_sum", "chat", "m", "a"] == 1.0
    assert found["gateway_upstream_seconds_sum", "m", "a"] == 0.75
    assert found["gateway_overhead_seconds_sum", "chat"] == 0.25
    assert found["gateway_overhead_seconds_bucket", "chat", "0.25"] == 1
    assert found["gateway_overhead_seconds_bucket", "chat", "0.1"] == 0


def test_tokens_add_up_to_what_the_upstream_counted():
    found = samples(counted(call(attempt())))
    tokens = {labels[1:]: n for labels, n in found.items() if labels[0] == "gateway_tokens_total"}
    assert tokens == {("input", "text", "no"): 60, ("input", "text", "read"): 30, ("input", "text", "write"): 10,
                      ("output", "text", "no"): 15, ("output", "reasoning", "no"): 5}


def test_streams_tell_their_ends_and_their_first_token():
    made = [call(attempt(), stream=True, first_token_at=10.4), call(attempt(), outcome="broken", error="truncated", stream=True),
            call(attempt(error="timeout"), outcome="failed", error="timeout", stream=True),
            call(attempt(), outcome="client_gone", stream=True)]
    found = samples(counted(*made))
    for end in ("committed_ok", "failed_before_commit", "failed_after_commit", "client_gone"):
        assert found["gateway_stream_outcomes_total", end] == 1
    assert found["gateway_ttft_seconds_sum", "m", "a"] == pytest.approx(0.4)


def test_each_failed_hop_that_was_followed_by_another_is_a_failover():
    hops = attempt(error="rate_limited"), attempt("a", start=11.0, end=12.0, error="timeout"), attempt("b", start=12.0, end=13.0)
    found = samples(counted(call(*hops)))
    assert found["gateway_failovers_total", "a", "a", "rate_limited"] == found["gateway_failovers_total", "a", "b", "timeout"] == 1
    assert found["gateway_requests_total", "chat", "m", "b", "ok"] == 1


@pytest.mark.parametrize(("second", "result"), [({}, "won"), ({"hedged": True, "committed": False}, "lost"),
                                                ({"error": "timeout"}, "failed")])
def test_a_race_is_no_failover(second, result):
    first = attempt(end=12.0, hedged=result == "won", committed=result == "lost", error="timeout" if result == "failed" else "")
    found = samples(counted(call(first, attempt("b", start=11.0, end=12.0, **second))))
    assert found["gateway_hedges_total", result] == 1
    assert not [key for key in found if key[0] == "gateway_failovers_total"]
    winner = "a" if result == "lost" else "b"
    assert found["gateway_requests_total", "chat", "m", winner, "ok"] == 1


@pytest.mark.parametrize(("kind", "scope"), [("limited", "key"), ("budget", "budget"), ("shed", "inflight")])
def test_refusals_by_a_limit_are_counted_by_whose_it_was(kind, scope):
    assert samples(counted(call(outcome="refused", error=kind)))["gateway_limit_rejections_total", scope] == 1


def test_a_body_that_is_too_large_is_no_limit_of_tokens():
    refused = call(outcome="refused", error="body_too_large")
    assert not [key for key in samples(counted(refused)) if key[0] == "gateway_limit_rejections_total"]
    refused.error.code = "request_token_budget"
    assert samples(counted(refused))["gateway_limit_rejections_total", "request_tokens"] == 1


def test_money_is_counted_where_it_was_spent_also_by_copies_that_nobody_asked_for():
    made = [call(attempt(error="truncated", cost_usd=0.25), attempt("b", start=11.0, end=12.0, cost_usd=0.5)),
            call(attempt("b", cost_usd=1.0), role="shadow")]
    found = samples(counted(*made))
    assert found["gateway_cost_usd_total", "m", "a"] == 0.25
    assert found["gateway_cost_usd_total", "m", "b"] == 1.5
    assert sum(n for key, n in found.items() if key[0] == "gateway_requests_total") == 1


def test_an_answer_of_the_cache_has_no_provider():
    found = samples(counted(call(outcome="ok", cache="cache", routed="cache")))
    assert found["gateway_cache_total", "hit"] == found["gateway_requests_total", "chat", "m", "cache", "ok"] == 1


def test_names_that_clients_make_up_are_other():
    tallies = counted(*(call(outcome="refused", error="no_model", asked=f"made-up-{n}") for n in range(10_000)))
    assert samples(tallies)["gateway_requests_total", "chat", "other", "none", "refused"] == 10_000
    assert sum(map(len, tallies.dump().values())) < 10


def test_a_catalogue_without_end_is_cut_off():
    tallies = counted(*(call(attempt(f"p{n}", f"m{n}")) for n in range(MAX_ROWS + 500)))
    assert samples(tallies)["gateway_requests_total", "chat", "other", "other", "ok"] == 500
    assert max(map(len, tallies.dump().values())) == MAX_ROWS + 1


def test_nothing_is_counted_where_nobody_looks():
    tallies = Tallies()
    tallies.counting = False
    tallies.add(call(attempt()))
    assert tallies.dump() == {}


def test_a_dump_travels_and_several_become_one():
    one, two = counted(call(attempt()), call(attempt("b"))), counted(call(attempt()))
    sent = [msgspec.msgpack.decode(msgspec.msgpack.encode(each.dump()), type=Dump) for each in (one, two)]
    both = counted(call(attempt()), call(attempt("b")), call(attempt()))
    assert sorted(merged(sent)["gateway_requests_total"]) == sorted(both.dump()["gateway_requests_total"])
    assert render(merged(sent))[1].decode().count("gateway_request_seconds_count") == 2


def test_of_states_the_worst_counts_and_unknown_families_are_left_out():
    dumps = [{"gateway_breaker_state": [(("a",), [n])], "gateway_in_flight_requests": [((), [n])], "gone": [((), [n])]} for n in (3, 1)]
    assert merged(dumps) == {"gateway_breaker_state": [(("a",), [3])], "gateway_in_flight_requests": [((), [4])]}


def test_openmetrics_is_spoken_to_those_who_ask_for_it():
    content_type, page = render(counted(call(attempt(cost_usd=0.1), stream=True)).dump(), OPENMETRICS)
    assert content_type.startswith("application/openmetrics-text")
    assert {family.name for family in openmetrics(page.decode())} >= {"gateway_requests", "gateway_cost_usd"}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_named_as_prometheus_wants_it(name):
    """https://prometheus.io/docs/practices/naming/, which promtool checks."""
    family = FAMILIES[name]
    assert name.endswith("_total") == (family.kind == "counter")
    assert bool(family.bounds) == (family.kind == "histogram")
    assert not family.says.isspace() and family.says.endswith(".")
    assert not set(family.labels) & {"le", "quantile", "job", "instance"}
    assert not any(unit in name for unit in ("_ms", "milliseconds", "minutes"))
