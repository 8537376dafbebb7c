"""What Responses clients may ask, what is refused with the field's name, and what other formats are told of it."""
import json

import pytest

from gateway.core import request as rq
from gateway.core.errors import GatewayError
from gateway.wire.openai_responses import input_items, output_items, with_history, without_reasoning
from tests.unit.wire.responses_turns import RESPONSES, asked, dump, message, to

FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a":1}', "id": "fc_1", "status": "completed"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "42"}
PIXEL = "data:image/png;base64,aGk="


def talk(*items, **fields):
    return RESPONSES.open(asked(input=list(items) or "hi", **fields))


def roles(conversation):
    return [(m.role, [type(p).__name__ for p in m.parts]) for m in conversation.messages]


def sent(*items, **fields):
    return json.loads(RESPONSES.build_request(asked(input=list(items), **fields), to()))


# ---------------------------------------------------------------- parsing
def test_the_facts_are_found():
    request = asked(input=[{"role": "user", "content": [{"type": "input_text", "text": "12345"},
                                                        {"type": "input_image", "image_url": PIXEL}]}],
                    instructions="123", tools=[FUNCTION], tool_choice={"type": "function", "name": "f"}, parallel_tool_calls=False,
                    max_output_tokens=77, stream=True, prompt_cache_key="k", previous_response_id="resp_0", store=False,
                    text={"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}})
    assert (request.model, request.stream, request.max_tokens, request.images, request.session_hint) == ("asked", True, 77, 1, "k")
    assert request.tools == {"f": FUNCTION["parameters"]} and request.clean
    assert request.tool_choice == rq.ToolChoice("named", "f", False)
    assert request.format == rq.Format("json_schema", {"type": "object"}, True, "n")
    assert request.chars == 5 + 3 + len(dump([FUNCTION]))
    assert (request.body.previous_response_id, request.body.store) == ("resp_0", False)


@pytest.mark.parametrize(("fields", "param"), [
    ({"input": None}, "input"), ({"input": []}, "input"), ({"input": ""}, "input"), ({"input": 3}, "input"),
    ({"input": [3]}, "input.0"), ({"input": [{"x": 1}]}, "input.0.type"), ({"input": [{"role": "robot", "content": ""}]}, "input.0.role"),
    ({"input": [{"role": "user"}]}, "input.0.content"), ({"input": [{"role": "user", "content": [7]}]}, "input.0.content.0"),
    ({"input": [{"role": "user", "content": [{"text": "x"}]}]}, "input.0.content.0.type"),
    ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input.0.content.0.text"),
    ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input.0.content.0.image_url"),
    ({"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]}, "input.0.call_id"),
    ({"input": [{"type": "function_call", "call_id": "c", "arguments": "{}"}]}, "input.0.name"),
    ({"input": [{"type": "function_call_output", "output": "x"}]}, "input.0.call_id"),
    ({"tools": {}}, "tools"), ({"tools": [{"type": "function"}]}, "tools.0.name"), ({"tools": [3]}, "tools.0"),
    ({"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "custom"}]}]}, "tools.0.tools.0.name"),
    ({"tool_choice": "maybe"}, "tool_choice"), ({"tool_choice": {"type": "function"}}, "tool_choice.name"),
    ({"background": True}, "background"), ({"temperature": 3}, "temperature"), ({"temperature": "hot"}, "temperature"),
    ({"max_output_tokens": 0}, "max_output_tokens"), ({"stream": "yes"}, "stream"), ({"metadata": []}, "metadata"),
    ({"text": {"format": {"type": "json_schema", "name": "n"}}}, "text.format.schema"), ({"parallel_tool_calls": 1}, "parallel_tool_calls"),
    ({"model": "m" * 513}, "model")])
def test_what_nobody_could_answer_is_refused_by_name(fields, param):
    with pytest.raises(GatewayError) as refused:
        asked(**fields)
    assert (refused.value.kind, refused.value.param) == ("bad_request", param)
    assert param in refused.value.message


def test_unknown_things_and_nulls_are_nobodys_business():
    body = {"model": "m", "input": [{"type": "brand_new_call", "x": 1}, {"role": "user", "content": "hi", "x_y": 2},
                                    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "g"},
                                    {"type": "item_reference", "id": "msg_9"}],
            "tools": [{"type": "web_search", "x": 1}, {"type": "tool_search"}], "tool_choice": {"type": "web_search"},
            "text": None, "metadata": None, "client_metadata": {"a": 1}, "include": ["x"], "truncation": "auto"}
    request = RESPONSES.parse_request(dump(body))
    assert request.clean
    assert RESPONSES.build_request(request, to(model="up")) == dump(body | {"model": "up", "store": False})


# ---------------------------------------------------------------- same format
def test_only_the_model_changes_and_nothing_is_stored_there():
    raw = b'{ "model" : "m", "input" : "h\\u00e9", "x": 1.0, "store":false, "stream":true }'
    assert RESPONSES.build_request(RESPONSES.parse_request(raw), to(stream=True)) == raw.replace(b'"m"', b'"up"')
    dropped = json.loads(RESPONSES.build_request(RESPONSES.parse_request(raw), to(drop_params=frozenset({"x"}))))
    assert dropped == {"model": "up", "input": "hé", "stream": False, "store": False}
    bare = raw.replace(b' "store":false,', b"")
    assert RESPONSES.build_request(RESPONSES.parse_request(bare), to(stream=True)) == \
        bare.replace(b'"m"', b'"up"').replace(b" }", b' ,"store":false}')
    asked = RESPONSES.parse_request(raw.replace(b"false", b"true"))
    assert json.loads(RESPONSES.build_request(asked, to(stream=True)))["store"] is False
    assert asked.body.store
    refuses = to(stream=True, drop_params=frozenset({"store"}))
    assert RESPONSES.build_request(RESPONSES.parse_request(bare), refuses) == bare.replace(b'"m"', b'"up"')


def test_habits_of_chat_clients_are_mended():
    body = sent({"role": "user", "content": ["a", {"type": "text", "text": "b"},
                                             {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}}]},
                {"role": "assistant", "content": [{"type": "text", "text": "c"}]}, {"role": "assistant", "content": None},
                {"type": "function_call", "call_id": "c1", "name": "f", "arguments": {"a": 1}},
                {"type": "function_call_output", "call_id": "c1", "output": {"n": 2}},
                tools=[{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
                tool_choice={"type": "function", "function": {"name": "f"}}, response_format={"type": "json_object"})
    assert body["input"][0]["content"] == [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"},
                                           {"type": "input_image", "image_url": PIXEL, "detail": "low"}]
    assert body["input"][1]["content"] == [{"type": "output_text", "text": "c"}]
    assert [i.get("arguments") or i.get("output") for i in body["input"][2:]] == ['{"a":1}', '{"n":2}']
    assert body["tools"] == [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
    assert body["tool_choice"] == {"type": "function", "name": "f"}
    assert "response_format" not in body and body["text"] == {"format": {"type": "json_object"}}


def test_calls_and_results_are_paired():
    user = {"role": "user", "content": "q"}
    lonely = sent(user, CALL, {**CALL, "call_id": "c2"}, {**RESULT, "call_id": "c2"})["input"]
    assert [(i.get("type"), i.get("call_id")) for i in lonely[1:]] == [
        ("function_call", "c1"), ("function_call", "c2"), ("function_call_output", "c1"), ("function_call_output", "c2")]
    orphan = sent(user, {**RESULT, "call_id": "nobody"})["input"]
    assert orphan[1] == {"type": "message", "role": "user", "content": "42"}
    again = sent(user, CALL, RESULT, CALL, RESULT)["input"]
    assert len(again) == 5


def test_a_choice_without_tools_is_not_sent():
    assert "tool_choice" not in sent({"role": "user", "content": "q"}, tool_choice="auto")


# ---------------------------------------------------------------- for other formats
def test_items_become_turns():
    conversation = talk({"role": "developer", "content": "dev"}, {"role": "user", "content": "q"},
                        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "g"},
                        message("checking"), CALL, {**CALL, "call_id": "c2"}, {**RESULT, "call_id": "c2"}, RESULT, message("done"),
                        instructions="sys", tools=[FUNCTION])
    assert roles(conversation) == [
        ("system", ["Text"]), ("developer", ["Text"]), ("user", ["Text"]), ("assistant", ["Thinking", "Text", "Call", "Call"]),
        ("tool", ["Result", "Result"]), ("assistant", ["Text"])]
    assert conversation.messages[3].parts[0].owner == "openai-responses" and conversation.messages[3].parts[0].text == "hm"
    assert [r.call_id for r in conversation.messages[4].parts] == ["c2", "c1"]


def test_a_call_id_that_serves_twice_is_told_apart():
    conversation = talk({"role": "user", "content": "q"}, CALL, RESULT, CALL, {**RESULT, "output": "43"})
    calls = [p for m in conversation.messages for p in m.parts if isinstance(p, rq.Call)]
    results = [p for m in conversation.messages for p in m.parts if isinstance(p, rq.Result)]
    assert [c.id for c in calls] == [r.call_id for r in results] == ["c1", "c1_2"]


def test_freeform_tools_become_functions_with_one_string():
    conversation = talk({"role": "user", "content": "q"},
                        {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": 'a "b"'},
                        {"type": "custom_tool_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "ok"}]},
                        tools=[{"type": "custom", "name": "patch", "description": "Edits.",
                                "format": {"type": "grammar", "syntax": "lark", "definition": "start: X"}}])
    tool = conversation.tools[0]
    assert (tool.kind, tool.name, list(tool.parameters["properties"])) == ("function", "patch", ["input"])
    assert tool.description.startswith("Edits.") and "start: X" in tool.description
    call, result = conversation.messages[1].parts[0], conversation.messages[2].parts[0]
    assert json.loads(call.arguments) == {"input": 'a "b"'} and call.kind == "function"
    assert result.name == "patch" and result.parts == [rq.Text("ok")]


def test_namespaces_are_flattened_and_additional_tools_counted_in():
    namespace = {"type": "namespace", "name": "n" * 60, "tools": [FUNCTION, {"type": "function", "name": "g"}]}
    conversation = talk({"type": "additional_tools", "role": "developer", "tools": [{"type": "namespace", "name": "functions",
                                                                                    "tools": [{"type": "custom", "name": "exec"}]}]},
                        {"role": "user", "content": "q"}, {**CALL, "namespace": "n" * 60}, RESULT, tools=[namespace])
    names = [tool.name for tool in conversation.tools]
    assert names[0] == "exec" and len(set(names)) == 3 and all(len(name) <= 64 for name in names)
    assert conversation.messages[1].parts[0].name == names[1]


def test_tools_of_the_provider_and_allowed_tools():
    conversation = talk(tools=[FUNCTION, {"type": "function", "name": "g"}, {"type": "web_search"}],
                        tool_choice={"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "g"}]})
    assert [t.name for t in conversation.tools] == ["g"] and conversation.tool_choice.mode == "required"
    server = talk(tools=[{"type": "web_search", "x": 1}]).tools[0]
    assert (server.kind, server.payload, server.extra) == ("server", {"type": "web_search", "x": 1}, {"wire": "openai-responses"})


def test_parts_of_every_kind():
    conversation = talk({"role": "user", "content": [
        {"type": "input_image", "image_url": PIXEL, "detail": "high"}, {"type": "input_image", "image_url": "https://x/y.png"},
        {"type": "input_image", "file_id": "file_1"}, {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="},
        {"type": "input_file", "file_url": "https://x/z.pdf"}, {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}},
        {"type": "brand_new", "x": 1}]}, {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]})
    assert conversation.messages[0].parts == [
        rq.Image(data="aGk=", media_type="image/png", detail="high"), rq.Image(url="https://x/y.png"), rq.Image(file_id="file_1"),
        rq.Document(media_type="application/pdf", data="aGk=", title="a.pdf"), rq.Document(url="https://x/z.pdf"),
        rq.Document(media_type="audio/mpeg", data="aGk="), rq.Opaque("openai-responses", "brand_new", {"type": "brand_new", "x": 1})]
    assert conversation.messages[1].parts == [rq.Refusal("no")]


def test_knobs_are_carried_over():
    conversation = talk(temperature=0.5, top_p=0.9, max_output_tokens=50, reasoning={"effort": "minimal", "summary": "auto"}, user="u",
                        metadata={"a": "b"}, prompt_cache_key="k", service_tier="flex", safety_identifier="s", store=True)
    assert (conversation.sampling.temperature, conversation.sampling.top_p, conversation.sampling.max_tokens) == (0.5, 0.9, 50)
    assert conversation.thought == rq.Thought(effort="minimal", include=True, summary="auto")
    assert (conversation.user, conversation.metadata, conversation.cache_key, conversation.service_tier) == ("u", {"a": "b"}, "k", "flex")
    assert conversation.extra == {"openai-responses": {"safety_identifier": "s"}}


# ---------------------------------------------------------------- stored state
def test_history_is_put_before_the_input():
    first = asked(input="What is 6*7?")
    final = {"output": [{"id": "rs_1", "type": "reasoning", "summary": []}, message("42", "msg_9"), CALL]}
    request = asked(input=[RESULT], previous_response_id="resp_1", instructions="Be brief.", tools=[FUNCTION])
    merged = with_history(request, input_items(first) + output_items(final))
    assert roles(RESPONSES.open(merged))[1:] == [("user", ["Text"]), ("assistant", ["Thinking", "Text", "Call"]), ("tool", ["Result"])]
    body = json.loads(RESPONSES.build_request(merged, to()))
    assert "previous_response_id" not in body and body["instructions"] == "Be brief."
    assert [i["type"] for i in body["input"]] == ["message", "message", "function_call", "function_call_output"]
    assert not any("id" in i for i in body["input"][1:3])
    assert merged.body.previous_response_id == "resp_1" and merged.chars > request.chars


def test_thinking_that_can_be_read_stays_in_the_history_and_references_are_resolved():
    secret = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    request = asked(input=[{"type": "item_reference", "id": "msg_9"}, {"role": "user", "content": "and?"}])
    merged = with_history(request, [secret], {"msg_9": message("42", "msg_9")})
    body = json.loads(RESPONSES.build_request(merged, to()))
    assert body["input"][0] == secret and body["input"][1]["content"][0]["text"] == "42"


def test_only_its_maker_gets_encrypted_thinking_of_the_history():
    secret = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    merged = with_history(asked(input="and?"), [message("a", role="user"), secret, message("42")])
    merged.body.makers = {"rs_1": "lab"}
    for provider, kinds in (("lab", ["message", "reasoning", "message", "message"]), ("other", ["message"] * 3)):
        body = json.loads(RESPONSES.build_request(merged, to(provider=provider)))
        assert [item["type"] for item in body["input"]] == kinds


def test_input_is_stored_as_items_with_ids():
    items = input_items(asked(input="hi"))
    assert items[0]["content"] == [{"type": "input_text", "text": "hi"}] and items[0]["id"].startswith("msg_")
    items = input_items(asked(input=[CALL, RESULT]))
    assert items[0]["id"] == "fc_1" and items[1]["id"]


def test_thinking_that_an_upstream_cannot_read_can_be_left_out():
    secret = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    request = asked(input=[{"role": "user", "content": "a"}, secret, message("b"), {"role": "user", "content": "c"}])
    body = json.loads(RESPONSES.build_request(without_reasoning(request), to()))
    assert len(body["input"]) == 3 and "gAAA" not in json.dumps(body)
    assert without_reasoning(asked(input="hi")) is None
