"""Whole answers, errors and embeddings."""
import json

import pytest

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.core.reply import fold
from gateway.wire.gemini import GEMINI, build_count, embed
from tests.unit.wire.frames import dump
from tests.unit.wire.gemini_turns import MODEL, USAGE, frame, kinds, say, shown, turn


def answered(body, same=True, touched=False, **rules):
    raw = dump(body)
    events = turn(GEMINI.parse_reply(raw, same), stream=False, **rules)
    return json.loads(GEMINI.build_reply(fold(events), shown(same=same, touched=touched), raw if same else None))


def test_a_whole_answer_is_read_like_a_frame():
    events = GEMINI.parse_reply(dump(frame({"text": "th", "thought": True}, {"text": "hi"}, finish="STOP", usage=USAGE)), False)
    assert kinds(events) == ["Meta", "Reasoning", "Text", "Finish", "Usage", "End"]


def test_a_stream_that_came_as_an_array_is_the_same_turn():
    events = GEMINI.parse_reply(dump([say("a"), say("b", finish="STOP", usage=USAGE)]), True)
    assert [e.text for e in events if type(e) is ev.Text] == ["a", "b"] and kinds(events)[-1] == "End"
    assert GEMINI.parse_reply(dump([{"error": {"code": 429, "message": "m"}}]), True)[-1].error.upstream_status == 429


def test_a_candidate_without_a_reason_ended_with_its_body():
    assert [e.reason for e in GEMINI.parse_reply(dump(say("a")), True) if type(e) is ev.Finish] == ["stop"]
    call = frame({"functionCall": {"name": "f"}})
    assert [e.reason for e in GEMINI.parse_reply(dump(call), True) if type(e) is ev.Finish] == ["tool_calls"]


@pytest.mark.parametrize("raw", [b"<html>", b"{", b"[]", b'"x"', b'{"choices":[]}', b"[1]"])
def test_what_is_no_answer_is_refused(raw):
    with pytest.raises(GatewayError) as refused:
        GEMINI.parse_reply(raw, True)
    assert refused.value.kind == "bad_reply"


def test_the_body_of_the_same_format_keeps_everything():
    body = {**frame({"text": "hi", "newField": 1}, {"executableCode": {"code": "1"}}, finish="STOP", usage={**USAGE, "serviceTier": "x"},
                    avgLogprobs=-0.5, groundingMetadata={"a_b": []}), "createTime": "t"}
    assert answered(body) == body


def test_calls_get_ids_and_keep_what_stands_beside_them():
    body = frame({"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "s"}, {"text": "after"}, finish="STOP")
    parts = answered(body, tools={"f": None})["candidates"][0]["content"]["parts"]
    assert parts[0]["functionCall"].pop("id") and parts == body["candidates"][0]["content"]["parts"]


def test_numbers_for_words_and_missing_names_are_mended():
    got = answered({"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": 2}]})
    assert got["candidates"][0]["finishReason"] == "MAX_TOKENS" and got["modelVersion"] == MODEL and got["usageMetadata"]


def test_a_blocked_prompt_keeps_its_feedback():
    body = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": USAGE, "modelVersion": MODEL}
    assert answered(body) == body


def test_a_foreign_turn_as_one_answer():
    events = [ev.Reasoning("t"), ev.Reasoning("h"), ev.Text("a"), ev.Text("b"), ev.ToolCall(0, "c", "f", "nonsense"), ev.Finish("length"),
              ev.Usage(input=1, output=2, total=3), ev.End()]
    got = json.loads(GEMINI.build_reply(fold(events), shown(same=False), None))
    assert got["candidates"] == [{"content": {"parts": [
        {"text": "th", "thought": True}, {"text": "ab"}, {"functionCall": {"name": "f", "args": {"value": "nonsense"}, "id": "c"}}],
        "role": "model"}, "finishReason": "MAX_TOKENS", "index": 0}]
    assert got["usageMetadata"]["totalTokenCount"] == 3 and got["responseId"] == "req1"


@pytest.mark.parametrize(("kind", "code", "status"), [
    ("bad_request", 400, "INVALID_ARGUMENT"), ("unauthorized", 401, "UNAUTHENTICATED"), ("forbidden", 403, "PERMISSION_DENIED"),
    ("no_model", 404, "NOT_FOUND"), ("body_too_large", 413, "INVALID_ARGUMENT"), ("limited", 429, "RESOURCE_EXHAUSTED"),
    ("internal", 500, "INTERNAL"), ("exhausted", 502, "UNAVAILABLE"), ("shed", 503, "UNAVAILABLE"), ("timeout", 504, "DEADLINE_EXCEEDED")])
def test_errors_have_googles_names(kind, code, status):
    error = json.loads(GEMINI.render_error(GatewayError(kind, "why", param="a.b")))["error"]
    assert (error["code"], error["status"], error["message"]) == (code, status, "why")
    assert any(detail.get("fieldViolations", [{}])[0].get("field") == "a.b" for detail in error["details"])


def test_an_upstreams_own_error_goes_back_in_its_words_if_it_has_this_shape():
    own = {"error": {"code": 400, "message": "no", "status": "FAILED_PRECONDITION", "details": [{"x": 1}]}}
    assert json.loads(GEMINI.render_error(GatewayError("rejected", "no", verbatim=own))) == own
    other = json.loads(GEMINI.render_error(GatewayError("rejected", "no", verbatim={"error": {"message": "no", "type": "x"}})))["error"]
    assert other["status"] == "INVALID_ARGUMENT"


def test_counts():
    assert json.loads(build_count(7)) == {"totalTokens": 7}


# ---------------------------------------------------------------- embeddings
def test_one_text_and_many():
    one = embed.parse_request(dump({"content": {"parts": [{"text": "a"}, {"text": "b"}]}, "output_dimensionality": 8, "taskType": "X"}), False)
    assert one == embed.Asked(["a\nb"], 8, "X")
    many = embed.parse_request(dump({"requests": [{"model": "models/m", "content": {"parts": [{"text": t}]}} for t in "ab"]}), True)
    assert many.texts == ["a", "b"] and many.batch
    sent = json.loads(embed.build_request(one, "m"))["requests"]
    assert sent == [{"model": "models/m", "content": {"parts": [{"text": "a\nb"}]}, "outputDimensionality": 8, "taskType": "X"}]


def test_vectors_of_either_answer():
    assert embed.parse_reply(b'{"embeddings":[{"values":[1.5]},{"values":[2]}]}') == [[1.5], [2]]
    assert embed.parse_reply(b'{"embedding":{"values":[1.5]}}') == [[1.5]]
    assert json.loads(embed.build_reply([[1.5]], False)) == {"embedding": {"values": [1.5]}}
    assert json.loads(embed.build_reply([[1.5]], True)) == {"embeddings": [{"values": [1.5]}]}
    for raw in (b"{}", b"x", b'{"embeddings":[]}', b'{"error":{"code":400,"message":"m"}}'):
        with pytest.raises(GatewayError):
            embed.parse_reply(raw)


@pytest.mark.parametrize(("body", "batch", "param"), [
    ({}, False, "content"), ({"content": {"parts": []}}, False, "content.parts"),
    ({"content": {"parts": [{"inlineData": {}}]}}, False, "content.parts.0.text"),
    ({"content": {"parts": [{"text": "a"}]}, "outputDimensionality": 0}, False, "outputDimensionality"),
    ({"requests": []}, True, "requests"), ({"requests": [{}]}, True, "requests.0.content")])
def test_bad_embedding_requests_name_the_field(body, batch, param):
    with pytest.raises(GatewayError) as refused:
        embed.parse_request(dump(body), batch)
    assert refused.value.param == param
