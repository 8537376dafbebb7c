"""Status first, then codes, then whole words: what a provider's refusal means."""
import json

import pytest

from gateway.core.errors import KINDS, GatewayError
from gateway.providers.classify import _STATUS, classify, refine
from gateway.providers.wording import RULES
from tests.unit.providers.people import KEY, provider

ACME = provider()


def refused(status, body="", headers=None):
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return classify(status, headers or {}, raw, ACME, wall=1_700_000_000.0)


def says(message, **fields):
    return {"error": {"message": message, **fields}}


@pytest.mark.parametrize(("status", "body", "kind"), [
    # the key
    (401, says("anything, even quota"), "auth"),
    (401, "", "auth"),
    (400, says("API key not valid. Please pass one.", status="INVALID_ARGUMENT"), "auth"),
    (400, says("no", details=[{"reason": "API_KEY_INVALID"}]), "auth"),
    (400, [says("API key expired. Renew it.")], "auth"),
    (400, {"code": "invalid-argument", "error": "Incorrect API key provided."}, "auth"),
    (403, {"message": "The security token in this request is expired"}, "auth"),
    # money
    (402, "", "out_of_credits"),
    (429, says("You exceeded your quota", code="insufficient_quota"), "out_of_credits"),
    (429, says("You exceeded your current quota, please check your plan and billing details."), "out_of_credits"),
    (400, says("Your credit balance is too low to use this API."), "out_of_credits"),
    (403, says("Used all available credits of this month."), "out_of_credits"),
    (403, says("Insufficient account balance"), "out_of_credits"),
    # the account
    (403, says("Your account has been suspended."), "suspended"),
    (403, says("This organization has been disabled."), "suspended"),
    (403, says("blocked due to abuse"), "suspended"),
    # the plan
    (403, "", "forbidden_upstream"),
    (403, says("Project does not have access to model m"), "forbidden_upstream"),
    (400, says("You are not allowed to access this deployment"), "forbidden_upstream"),
    (404, says("No endpoints found matching your data policy"), "forbidden_upstream"),
    # the model
    (404, says("nope"), "model_not_found"),
    (404, "<html><head><title>404 Not Found</title></head></html>", "model_not_found"),
    (410, "", "model_not_found"),
    (400, says("The model `x-500` does not exist"), "model_not_found"),
    (400, says("vendor/x is not a valid model ID"), "model_not_found"),
    (400, {"type": "invalid_model", "message": "Invalid model: x"}, "model_not_found"),
    (400, says("gone", code="model_decommissioned"), "model_not_found"),
    # time
    (408, "", "timeout"), (504, "", "timeout"), (524, "error code: 524", "timeout"),
    (409, "", "server_error"), (500, "", "server_error"), (502, "<html></html>", "server_error"), (520, "", "server_error"),
    (599, "", "server_error"),
    (503, "", "overloaded"), (529, says("Overloaded", type="overloaded_error"), "overloaded"), (498, "", "overloaded"),
    (500, says("The engine is currently overloaded"), "overloaded"),
    (503, says("DEGRADED function cannot be invoked"), "degraded"),
    (400, says("Function id 'x': DEGRADED function cannot be invoked"), "degraded"),
    (429, "", "rate_limited"),
    (429, says("Rate limit reached", type="rate_limit_error"), "rate_limited"),
    (403, says("API rate limit exceeded for this user"), "rate_limited"),
    # the day
    (429, says("Rate limit reached on tokens per day (TPD): Limit 100000, Used 9"), "daily_quota_exhausted"),
    (429, says("You have used up your daily free allocation"), "daily_quota_exhausted"),
    (429, says("quota", status="RESOURCE_EXHAUSTED",
               details=[{"violations": [{"quotaId": "RequestsPerDayPerProjectPerModel-FreeTier"}]}]), "daily_quota_exhausted"),
    (429, says("Limit 6000 tokens per minute. Need more tokens? Upgrade to Dev Tier today at x"), "rate_limited"),
    (429, says("You exceeded your current quota, please check your plan and billing details.", status="RESOURCE_EXHAUSTED"),
     "rate_limited"),
    # the size
    (413, "", "context_too_large"),
    (413, says("Request too large: Limit 12000, Requested 14137", code="rate_limit_exceeded"), "context_too_large"),
    (400, says("x", code="context_length_exceeded"), "context_too_large"),
    (400, says("This model's maximum context length is 8192 tokens. However, you requested 9000."), "context_too_large"),
    (400, says("prompt is too long: 250001 tokens > 200000 maximum"), "context_too_large"),
    (400, says("The input token count (12) exceeds the maximum number of tokens allowed (10)."), "context_too_large"),
    (500, says("too big", type="exceed_context_size_error"), "context_too_large"),
    # a range, a feature
    (400, says("Invalid 'temperature': above maximum", code="decimal_above_max_value"), "unsupported"),
    (400, says("temperature: range: 0..1"), "unsupported"),
    (400, says("Unsupported parameter: 'max_tokens' is not supported with this model"), "unsupported"),
    (400, says("response_format is unavailable for this model"), "unsupported"),
    (400, says("This model does not support image input"), "unsupported"),
    (400, says("Unknown name \"store\": Cannot find field."), "unsupported"),
    (400, says("max_tokens is too large: 100000. This model supports at most 4096 completion tokens"), "unsupported"),
    (400, says("messages[0]: unknown variant `input_audio`, expected `text`"), "unsupported"),
    (422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]},
     "unsupported"),
    (404, says("No endpoints found that support tool use"), "unsupported"),
    (400, says("bad call", code="tool_use_failed", failed_generation="<function=f>"), "unsupported"),
    # the body
    (400, says("messages.0.content: required", param="messages"), "rejected"),
    (400, says("messages: at least one message is required"), "rejected"),
    (400, says("Invalid type for 'messages[0].content': expected a string, got 5 instead"), "rejected"),
    (422, says("unprocessable"), "rejected"),
    (422, "", "rejected"),
    (400, "not json {", "rejected"),
    (400, says("refused by the content management policy", code="content_filter"), "rejected"),
    (404, says("Previous response with id 'resp_1' not found."), "rejected"),
    # odd ones move on
    (405, "", "server_error"), (418, "", "server_error"), (302, "", "server_error"),
])
def test_what_it_means(status, body, kind):
    assert refused(status, body).kind == kind


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize("message", [
    "messages.500.content: required", "tool call id call_429404 has no result", "field x must be a string (line 401, column 503)"])
def test_digits_of_ids_and_places_are_no_status(status, message):
    assert refused(status, says(message)).kind == "rejected"


def test_a_status_is_believed_over_words():
    assert refused(500, says("invalid api key, model not found, rate limit")).kind == "server_error"


def test_the_message_names_the_provider_and_the_status():
    error = refused(503, says("come back\nlater"))
    assert error.message == "Acme error 503: come back later"
    assert (error.status, error.upstream_status) == (503, 503)


@pytest.mark.parametrize(("body", "text"), [
    ("", "Service Unavailable"), ("{", "{"), ("plain words", "plain words"), ('"a string"', "a string"),
    ("<!doctype html><html><head><title>Down &amp; out</title>", "Down & out"),
    ("<html><body>x</body></html>", "an HTML page instead of an answer"),
    ({"error": "short"}, "short"), ({"detail": "detail"}, "detail"), ({"title": "title", "status": 503}, "title"),
    ({"message": json.dumps({"detail": [{"loc": ["body", "x"], "msg": "bad"}]})}, "body.x: bad"),
    ({"errors": [{"message": "first"}, {"message": "second"}]}, "first"), ([], "Service Unavailable"), ("null", "null"),
    ({"error": {"error": {"message": "deep"}}}, "deep"), ({"error": {"code": 7}}, "Service Unavailable"),
])
def test_every_shape_of_a_body_is_read(body, text):
    assert refused(503, body).message == f"Acme error 503: {text}"


def test_keys_and_addresses_do_not_get_through():
    error = refused(400, says(f"cannot use {KEY} at https://inner.example/v1", param="x", token="zzz", code=KEY))
    everything = error.message + json.dumps(error.verbatim) + str(error.code)
    assert KEY not in everything and "inner.example" not in everything and "zzz" not in everything


def test_a_provider_that_names_its_own_place_is_not_repeated():
    said = json.dumps({"error": {"message": "models:8000 cannot read /srv/models/a.bin", "detail": "at 10.1.2.3:99"}}).encode()
    for status in (400, 500):
        error = classify(status, {}, said, provider(base_url="http://models:8000/v1"))
        assert error.message.endswith("[redacted] cannot read [path]"), error.message
        told = json.dumps(error.verbatim) if error.verbatim else ""
        assert not any(place in told for place in ("models:8000", "/srv", "10.1.2.3")) and (status == 500) == (not told)


def test_the_callers_fault_goes_back_in_the_providers_words_and_status():
    error = refused(422, says("content is bad", type="invalid_request_error", param="messages", code="bad_content"))
    assert (error.status, error.param, error.code) == (422, "messages", "bad_content")
    assert error.verbatim == says("content is bad", type="invalid_request_error", param="messages", code="bad_content")


def test_other_shapes_are_made_an_openai_error():
    assert refused(422, {"detail": "content is bad"}).verbatim == {
        "error": {"message": "content is bad", "type": "invalid_request_error", "param": None, "code": None}}
    assert refused(400, {"object": "error", "message": "x", "type": "bad_thing", "code": "1200"}).verbatim == {
        "error": {"message": "x", "type": "bad_thing", "param": None, "code": "1200"}}


def test_a_context_overflow_keeps_the_upstreams_status():
    assert refused(400, says("prompt is too long")).status == 400
    assert refused(413, "").status == 413
    assert refused(500, says("x", code="context_length_exceeded")).status == 413


@pytest.mark.parametrize("kind", ["auth", "out_of_credits", "rate_limited", "server_error"])
def test_what_is_not_the_callers_fault_has_no_words_of_the_provider(kind):
    status = {"auth": 401, "out_of_credits": 402, "rate_limited": 429, "server_error": 500}[kind]
    error = refused(status, says("secret plans"))
    assert (error.kind, error.verbatim, error.status) == (kind, None, KINDS[kind][1])


def test_a_stated_time_is_read_for_what_passes():
    assert refused(429, says("slow"), {"Retry-After": "7"}).retry_after_s == 7
    assert refused(503, "", {"retry-after-ms": "1500"}).retry_after_s == 1.5
    assert refused(429, says("Please try again in 9m38.016s.")).retry_after_s == pytest.approx(578.016)
    assert refused(429, "").retry_after_s is None


def test_a_stated_time_means_nothing_for_what_does_not_pass():
    assert refused(400, says("bad body, try again in 5s"), {"Retry-After": "7"}).retry_after_s is None


def test_a_refused_tool_call_comes_along():
    extra = refused(400, says("bad call", code="tool_use_failed", failed_generation='{"name": "f"}')).extra
    assert extra == {"failed_generation": '{"name": "f"}'}


def test_a_refused_tool_call_inside_a_stream_is_not_redacted():
    fault = GatewayError("in_band", "x", extra={"failed_generation": "https://a.example"},
                         verbatim=says("x", code="tool_use_failed", failed_generation="[url]"))
    refined = refine(fault, ACME)
    assert refined.kind == "unsupported" and refined.extra == {"failed_generation": "https://a.example"}


def test_a_status_that_only_the_wire_knows_is_used():
    assert refine(GatewayError("in_band", "x", upstream_status=503), ACME).kind == "overloaded"


def test_numbers_about_limits_come_along():
    hint = refused(413, says("on tokens per minute (TPM): Limit 12000, Requested 14137")).hint
    assert (hint.metric, hint.limit, hint.requested) == ("tpm", 12_000, 14_137)


@pytest.mark.parametrize("body", [b"\xff\xfe", b"[" * 100_000, b"{" * 100_000, b'{"error":' * 3_000 + b"1" + b"}" * 3_000,
                                  b'{"error": {"message": ["' + b"x" * 300_000, b"\x00" * 50])
@pytest.mark.parametrize("status", [400, 403, 429, 500])
def test_garbage_is_an_error_like_any_other(status, body):
    assert isinstance(classify(status, {"retry-after": "soon"}, body, ACME), GatewayError)


def test_without_numbers_there_is_no_hint():
    assert refused(413, "").hint is None


def test_every_row_is_used_and_names_a_kind():
    from gateway.providers import classify as module
    used = {name for rows, _ in [*_STATUS.values(), module._UNSTATED, module._OTHER_4XX, module._OTHER_5XX] for name in rows}
    assert used == set(RULES)
    assert {rule.kind for rule in RULES.values()} | {kind for _, kind in _STATUS.values()} <= set(KINDS)


def in_band(error, **fields):
    return refine(GatewayError("in_band", "upstream error", extra={"error": error}, **fields), ACME)


@pytest.mark.parametrize(("error", "kind", "status"), [
    ({"message": "Rate limit reached", "type": "rate_limit_error", "code": "rate_limit_exceeded"}, "rate_limited", 429),
    ({"message": "x", "code": 429}, "rate_limited", 429),
    ({"message": "x", "code": "429"}, "rate_limited", 429),
    ({"message": "Overloaded", "type": "overloaded_error"}, "overloaded", 503),
    ({"message": "x", "type": "server_error", "code": "internal_error"}, "server_error", 502),
    ({"message": "x", "code": 502, "metadata": {"error_type": "provider_unavailable"}}, "server_error", 502),
    ({"message": "bad key", "type": "invalid_request_error", "code": "invalid_api_key"}, "auth", 502),
    ({"message": "x", "type": "insufficient_quota"}, "out_of_credits", 429),
    ({"message": "x", "code": "context_length_exceeded", "type": "invalid_request_error"}, "context_too_large", 400),
    ({"message": "invalid request: bad param", "type": "invalid_request_error", "code": 400}, "rejected", 400),
    ({"message": "something invalid", "type": "invalid_request_error"}, "unsupported", 400),
    ({"message": "x", "status": "UNAVAILABLE"}, "overloaded", 503),
    ({"message": "x", "status": "RESOURCE_EXHAUSTED"}, "rate_limited", 429),
    ({"message": "Too many requests, slow down"}, "rate_limited", 429),
    ({"message": "The request timed out"}, "timeout", 504),
    ({"message": "the model has 500 legs and 429 eyes"}, "in_band", 502),
    ("boom", "in_band", 502),
    ({}, "in_band", 502),
])
def test_an_error_inside_a_stream_says_what_it_is(error, kind, status):
    refined = in_band(error)
    assert (refined.kind, refined.status) == (kind, status)


def test_an_in_band_error_is_redacted_and_keeps_what_was_known():
    refined = in_band({"message": f"bad {KEY}", "code": 429}, retry_after_s=3.0)
    assert KEY not in refined.message and refined.retry_after_s == 3.0


def test_an_in_band_error_without_an_object_is_read_from_its_message():
    assert refine(GatewayError("in_band", "Rate limit reached"), ACME).kind == "rate_limited"
    assert refine(GatewayError("in_band", "x", code="overloaded_error"), ACME).kind == "overloaded"
    assert refine(GatewayError("in_band", "x", verbatim={"error": {"message": "x", "code": 503}}), ACME).kind == "overloaded"


def test_other_faults_are_not_touched():
    fault = GatewayError("truncated", "The stream ended early.")
    assert refine(fault, ACME) is fault
