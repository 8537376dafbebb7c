"""Whole responses: read as the events of a turn, and passed on in everything that did not have to change."""
import json

import pytest

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.core.reply import fold
from gateway.stream.turn import Rules, Turn
from tests.unit.wire.responses_turns import MODEL, RESPONSES, USAGE, call, dump, message, read, response, shown, sound

REASONING = {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "gAAA"}
SEARCH = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"query": "x"}}
TOOLS = {"f": {"type": "object", "properties": {"a": {"type": "integer"}}}}


def whole(*output, status="completed", usage=USAGE, **more):
    return response(status, output, usage, **more)


def passed(doc, model=MODEL, **rules):
    raw = doc if isinstance(doc, bytes) else dump(doc)
    turn = Turn(Rules(stream=False, **rules), 0.0)
    events = turn.feed(RESPONSES.parse_reply(raw, True), 0.0) + turn.eof(0.0)
    assert turn.fault is None
    return RESPONSES.build_reply(fold(events), shown(model=model, touched=turn.touched), raw)


def test_everything_is_read():
    events = RESPONSES.parse_reply(dump(whole(REASONING, message("Hello"), call())), False)
    assert [type(e).__name__ for e in events] == ["Meta", "Reasoning", "Text", "ToolDelta", "Usage", "Finish", "End"]
    assert events[1].text == "hm" and events[2].text == "Hello" and events[-2].reason == "tool_calls"


@pytest.mark.parametrize(("body", "kind"), [
    (b"<html>", "bad_reply"), (b"{", "bad_reply"), (b"[1,2]", "bad_reply"), (b'{"id":"x"}', "bad_reply"),
    (dump(response("queued")), "bad_reply"), (dump({"error": {"message": "no", "code": "x"}}), "in_band"),
    (dump(response("failed", error={"code": "server_error", "message": "no"})), "in_band"), (dump(response("cancelled")), "in_band"),
    (dump({"detail": "no"}), "in_band")])
def test_what_is_no_answer_fails(body, kind):
    try:
        found = RESPONSES.parse_reply(body, True)[-1].error.kind
    except GatewayError as error:
        found = error.kind
    assert found == kind


def test_an_untouched_body_keeps_its_bytes():
    raw = json.dumps(whole(REASONING, SEARCH, message("Hello 日本"), call()), indent=1).encode()
    assert passed(raw, tools=TOOLS) == raw
    assert passed(raw, "shown", tools=TOOLS) == raw.replace(b'"model": "m"', b'"model": "shown"')


def test_what_is_missing_is_filled_in():
    doc = whole({k: v for k, v in message("Hello").items() if k != "id"}, usage=None)
    del doc["created_at"], doc["model"]
    out = json.loads(passed(doc))
    assert out["created_at"] and out["model"] == MODEL and out["output"][0]["id"]
    assert out["usage"]["estimated"] is True and out["x_new"] == {"kept": True}


def test_repaired_calls_go_into_the_upstreams_own_document():
    out = json.loads(passed(whole(REASONING, SEARCH, call(arguments="{'a': 1,}", x_y=7)), tools=TOOLS))
    assert json.loads(out["output"][2]["arguments"]) == {"a": 1} and out["output"][2]["x_y"] == 7
    assert out["output"][:2] == [REASONING, SEARCH] and out["x_new"] == {"kept": True}


def test_a_call_written_as_text_becomes_one():
    out = json.loads(passed(whole(message('<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>')), tools=TOOLS))
    assert [(i["type"], i.get("name")) for i in out["output"]] == [("function_call", "f")]


def test_parts_keep_their_annotations():
    noted = message("Hello")
    noted["content"] = [{"type": "output_text", "text": "a", "annotations": [{"type": "url_citation", "url": "u"}]},
                        {"type": "output_text", "text": "b", "annotations": []}, {"type": "refusal", "refusal": "c"}]
    out = json.loads(passed(whole(noted, usage=None)))
    assert out["output"] == [noted]


@pytest.mark.parametrize(("reason", "finish"), [("max_output_tokens", "length"), ("content_filter", "content_filter")])
def test_an_incomplete_answer_stays_one(reason, finish):
    doc = whole(message("Hel"), status="incomplete", incomplete_details={"reason": reason})
    events = RESPONSES.parse_reply(dump(doc), True)
    assert [e.reason for e in events if type(e) is ev.Finish] == [finish]
    assert passed(doc) == dump(doc)


def test_a_body_for_a_client_that_streams():
    turn = Turn(Rules(tools=TOOLS), 0.0)
    events = turn.feed(RESPONSES.parse_reply(dump(whole(REASONING, SEARCH, message("Hello"), call())), True), 0.0) + turn.eof(0.0)
    final = sound(read(RESPONSES.encoder(shown()).encode(events)))
    assert final["output"] == [REASONING, SEARCH, message("Hello"), call()] and final["id"] == "resp_up"
