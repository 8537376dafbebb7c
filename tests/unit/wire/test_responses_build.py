"""What a Responses upstream is asked when the client spoke another format."""
import json

import pytest

from gateway.core import request as rq
from gateway.core.errors import GatewayError
from tests.unit.wire.responses_turns import CHAT, RESPONSES, dump, to

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


def built(*messages, target=None, **fields):
    """The body of a chat client's request."""
    request = CHAT.parse_request(dump({"model": "m", "messages": list(messages) or [{"role": "user", "content": "hi"}], **fields}))
    CHAT.open(request)
    return json.loads(RESPONSES.build_request(request, target or to(stream=True)))


def of(*messages, **fields):
    """The body of a dialogue."""
    request = CHAT.parse_request(dump({"model": "m", "messages": [{"role": "user", "content": "x"}]}))
    request.conversation = rq.Conversation(list(messages), **fields)
    return json.loads(RESPONSES.build_request(request, to()))


def test_a_plain_question():
    assert built() == {"model": "up", "input": [{"type": "message", "role": "user", "content": "hi"}], "stream": True, "store": False}


def test_leading_system_words_are_the_instructions():
    body = built({"role": "system", "content": "a"}, {"role": "developer", "content": "b"}, {"role": "user", "content": "q"},
                 {"role": "system", "content": "late"})
    assert body["instructions"] == "a\n\nb"
    assert [(i["role"], i["content"]) for i in body["input"]] == [("user", "q"), ("system", "late")]
    assert built({"role": "system", "content": "only"})["input"][0]["content"] == "only"


def test_calls_results_and_their_order():
    calls = [{"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}} for i in ("c1", "c2")]
    body = built({"role": "user", "content": "q"}, {"role": "assistant", "content": "look", "tool_calls": calls},
                 {"role": "tool", "tool_call_id": "c2", "content": "two"}, {"role": "tool", "tool_call_id": "c1", "content": "one"},
                 {"role": "user", "content": "and?"})
    assert [(i["type"], i.get("call_id"), i.get("output")) for i in body["input"]] == [
        ("message", None, None), ("message", None, None), ("function_call", "c1", None), ("function_call", "c2", None),
        ("function_call_output", "c1", "one"), ("function_call_output", "c2", "two"), ("message", None, None)]
    assert body["input"][1]["content"] == [{"type": "output_text", "text": "look"}]


def test_missing_results_are_told_and_orphans_become_words():
    body = of(rq.Message("user", [rq.Text("q")]), rq.Message("assistant", [rq.Call("c1", "f", "")]),
              rq.Message("tool", [rq.Result("nobody", [rq.Text("lost")])]), rq.Message("user", [rq.Text("go on")]))
    assert [(i["type"], i.get("output") or i.get("content") or i.get("arguments")) for i in body["input"]] == [
        ("message", "q"), ("function_call", "{}"), ("function_call_output", "No result was given."), ("message", "lost"),
        ("message", "go on")]


def test_long_ids_are_cut_the_same_way_for_call_and_result():
    long = "call_" + "x" * 90
    body = of(rq.Message("assistant", [rq.Call(long, "f", "{}"), rq.Call(long + "y", "f", "{}")]),
              rq.Message("tool", [rq.Result(long + "y", [rq.Text("2")]), rq.Result(long, [rq.Text("1")])]))
    ids = [i["call_id"] for i in body["input"]]
    assert all(len(i) <= 64 for i in ids) and ids[0] != ids[1] and ids[:2] == ids[2:]


def test_results_may_hold_pictures_and_say_that_they_are_errors():
    body = of(rq.Message("assistant", [rq.Call("c1", "f", "{}"), rq.Call("c2", "f", "{}")]),
              rq.Message("user", [rq.Result("c1", [rq.Text("see"), rq.Image(data="aGk=", media_type="image/jpeg")]),
                                  rq.Result("c2", [rq.Text("boom")], is_error=True), rq.Text("so?")]))
    assert body["input"][2]["output"] == [{"type": "input_text", "text": "see"},
                                          {"type": "input_image", "image_url": "data:image/jpeg;base64,aGk=", "detail": "auto"}]
    assert body["input"][3]["output"] == "Error: boom" and body["input"][4]["content"] == "so?"


def test_media_of_every_kind():
    body = of(rq.Message("user", [
        rq.Image(url="https://x/y.png", detail="low"), rq.Image(file_id="file_1"), rq.Document("application/pdf", "aGk=", title="a.pdf"),
        rq.Document(url="https://x/z.pdf"), rq.Document(text="plain", title="T"), rq.Document("audio/mpeg", "aGk="), rq.Refusal("no")]))
    assert body["input"][0]["content"] == [
        {"type": "input_image", "image_url": "https://x/y.png", "detail": "low"},
        {"type": "input_image", "file_id": "file_1", "detail": "auto"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="},
        {"type": "input_file", "file_url": "https://x/z.pdf"}, {"type": "input_text", "text": "T\n\nplain"},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}}, {"type": "input_text", "text": "no"}]


def test_thinking_goes_back_to_its_maker_only():
    item = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    body = of(rq.Message("assistant", [rq.Thinking("hm", owner="anthropic", signature="x"),
                                       rq.Thinking("hm", owner="openai-responses", extra={"openai-responses": item}),
                                       rq.Thinking("bare", owner="openai-responses"), rq.Text("a")]))
    assert [i["type"] for i in body["input"]] == ["reasoning", "message"] and body["input"][0] == item


def test_tools_and_choices():
    body = built(tools=[{"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}},
                        {"type": "function", "function": {"name": "g", "strict": True}},
                        {"type": "custom", "custom": {"name": "p", "format": {"type": "grammar", "grammar": {
                            "syntax": "lark", "definition": "start: X"}}}}],
                 tool_choice={"type": "custom", "custom": {"name": "p"}}, parallel_tool_calls=False)
    assert body["tools"] == [
        {"type": "function", "name": "f", "description": "d", "parameters": SCHEMA, "strict": False},
        {"type": "function", "name": "g", "parameters": {"type": "object", "properties": {}}, "strict": True},
        {"type": "custom", "name": "p", "format": {"type": "grammar", "syntax": "lark", "definition": "start: X"}}]
    assert (body["tool_choice"], body["parallel_tool_calls"]) == ({"type": "custom", "name": "p"}, False)
    assert built(tools=[{"type": "function", "function": {"name": "f"}}], tool_choice="required")["tool_choice"] == "required"


def test_freeform_calls_of_chat_stay_freeform():
    body = built({"role": "user", "content": "q"},
                 {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "p", "input": "x"}}]},
                 {"role": "tool", "tool_call_id": "c", "content": "ok"})
    assert body["input"][1:] == [{"type": "custom_tool_call", "call_id": "c", "name": "p", "input": "x"},
                                 {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"}]


def test_only_tools_that_this_api_runs_are_offered():
    body = of(rq.Message("user", [rq.Text("q")]), tools=[rq.Tool("web_search", kind="server", payload={"type": "web_search"}),
                                                       rq.Tool("bash", kind="server", payload={"type": "bash_20250124"})])
    assert body["tools"] == [{"type": "web_search"}]


def test_knobs_that_the_api_has():
    body = built(max_tokens=5, temperature=0.5, top_p=0.9, seed=7, stop=["x"], logit_bias={"1": 1}, presence_penalty=1,
                 user="u", metadata={"a": "b"}, prompt_cache_key="k", service_tier="flex", reasoning_effort="high", n=1,
                 response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}})
    assert body["max_output_tokens"] == 16 and body["reasoning"] == {"effort": "high"}
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["text"] == {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}}
    assert set(body) == {"model", "input", "stream", "store", "max_output_tokens", "temperature", "top_p", "reasoning", "include",
                         "text", "user", "metadata", "prompt_cache_key", "service_tier"}
    assert built(max_tokens=500, target=to(max_output=100))["max_output_tokens"] == 100


def test_a_budget_is_an_effort():
    for budget, effort in ((0, "none"), (1024, "low"), (8000, "medium"), (50_000, "high")):
        assert of(rq.Message("user", [rq.Text("q")]), thought=rq.Thought(budget_tokens=budget))["reasoning"]["effort"] == effort


def test_several_choices_cannot_be_had():
    with pytest.raises(GatewayError) as refused:
        built(n=2)
    assert (refused.value.kind, refused.value.param) == ("unsupported", "n")


def test_a_targets_refusals_are_heeded():
    body = built(temperature=1, max_tokens=50, target=to(drop_params=frozenset({"temperature"}), rename_params={"max_output_tokens": "mt"}))
    assert "temperature" not in body and body["mt"] == 50
