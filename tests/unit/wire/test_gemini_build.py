"""Requests of other formats, said to a Gemini upstream."""
import json

import pytest

from gateway.core import request as rq
from gateway.core.errors import GatewayError
from gateway.wire.gemini import GEMINI
from gateway.wire.gemini.schema import safe_name
from tests.unit.wire.gemini_turns import from_chat, to

PNG = "iVBORw0KGgoAAAANSUhEUg=="
CALLS = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}}
         for i, n, a in (("a", "f", '{"q":1}'), ("b", "g", "{}"))]
TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {
    "type": "object", "properties": {"q": {"type": "integer"}}, "additionalProperties": False}}}


def built(target=None, **fields):
    return json.loads(GEMINI.build_request(from_chat(**fields), target or to()))


def roles(body):
    return [turn["role"] for turn in body["contents"]]


def test_a_tool_round_trip_is_paired_by_order_whatever_the_client_said_between():
    body = built(messages=[
        {"role": "system", "content": "s"}, {"role": "user", "content": "go"},
        {"role": "assistant", "content": "calling", "tool_calls": CALLS}, {"role": "tool", "tool_call_id": "b", "content": '[1, 2]'},
        {"role": "user", "content": "wait"}, {"role": "tool", "tool_call_id": "a", "content": "plain"},
        {"role": "assistant", "content": "done"}, {"role": "user", "content": "bye"}])
    assert body["systemInstruction"] == {"parts": [{"text": "s"}]}
    assert roles(body) == ["user", "model", "user", "model", "user"]
    assert body["contents"][1]["parts"] == [{"text": "calling"}, {"functionCall": {"name": "f", "args": {"q": 1}}},
                                            {"functionCall": {"name": "g", "args": {}}}]
    assert body["contents"][2]["parts"] == [{"functionResponse": {"name": "f", "response": {"result": "plain"}}},
                                            {"functionResponse": {"name": "g", "response": {"result": [1, 2]}}}, {"text": "wait"}]


def test_calls_nobody_answered_get_an_answer_and_answers_nobody_asked_for_become_text():
    body = built(messages=[{"role": "user", "content": "go"}, {"role": "assistant", "content": None, "tool_calls": CALLS},
                           {"role": "tool", "tool_call_id": "a", "content": ""}, {"role": "tool", "tool_call_id": "zz", "content": "odd"}])
    answers = body["contents"][2]["parts"]
    assert [part["functionResponse"]["name"] for part in answers[:2]] == ["f", "g"]
    assert answers[0]["functionResponse"]["response"] == {"result": ""} and answers[2] == {"text": "odd"}
    assert len(answers) == 3 and answers[1]["functionResponse"]["response"]["result"]


def test_two_turns_of_calls_in_a_row_are_each_answered():
    body = built(messages=[{"role": "user", "content": "go"}, {"role": "assistant", "content": None, "tool_calls": CALLS[:1]},
                           {"role": "assistant", "content": None, "tool_calls": CALLS[1:]},
                           {"role": "tool", "tool_call_id": "a", "content": "1"}, {"role": "tool", "tool_call_id": "b", "content": "2"}])
    assert roles(body) == ["user", "model", "user", "model", "user"]
    assert [turn["parts"][0]["functionResponse"]["response"]["result"] for turn in body["contents"][2::2]] == ["1", "2"]


def test_ids_are_told_only_where_the_target_knows_them():
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "content": None, "tool_calls": CALLS[:1]},
                {"role": "tool", "tool_call_id": "a", "content": "1"}]
    known = built(to(flags=frozenset({"call_ids"})), messages=messages)["contents"]
    assert known[1]["parts"][0]["functionCall"]["id"] == known[2]["parts"][0]["functionResponse"]["id"] == "a"
    assert "id" not in json.dumps(built(messages=messages)["contents"])


def test_signatures_go_back_and_gemini_3_gets_a_stand_in_for_one_that_is_lost():
    signed = [{**CALLS[0], "extra_content": {"google": {"thought_signature": "sig"}}}, CALLS[1]]
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "content": None, "tool_calls": signed}]
    assert built(messages=messages)["contents"][1]["parts"][0]["thoughtSignature"] == "sig"
    lost = built(to(model="gemini-3-flash"), messages=[messages[0], {**messages[1], "tool_calls": CALLS}])["contents"][1]["parts"]
    assert lost[0]["thoughtSignature"] and "thoughtSignature" not in lost[1]


def test_instructions_alone_are_what_the_user_says_and_a_dialogue_begins_with_a_user():
    assert built(messages=[{"role": "system", "content": "s"}]) == {"contents": [{"role": "user", "parts": [{"text": "s"}]}]}
    assert roles(built(messages=[{"role": "assistant", "content": "hi"}, {"role": "user", "content": "x"}])) == ["user", "model", "user"]


def test_gemma_reads_instructions_as_the_users_words():
    body = built(to(model="gemma-3-27b-it"), messages=[{"role": "system", "content": "s"}, {"role": "user", "content": "u"}])
    assert body == {"contents": [{"role": "user", "parts": [{"text": "s"}, {"text": "u"}]}]}


def test_pictures_sound_and_documents_go_as_data():
    parts = built(messages=[{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{PNG}"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}}]}])["contents"][0]["parts"]
    assert [part["inlineData"]["mimeType"] for part in parts] == ["image/png", "audio/mpeg", "application/pdf"]


@pytest.mark.parametrize(("part", "param"), [
    ({"type": "image_url", "image_url": {"url": "https://x/y.png"}}, "messages.0.content.0"),
    ({"type": "file", "file": {"file_id": "file-1"}}, "messages.0.content.0")])
def test_what_is_elsewhere_is_refused_with_its_place(part, param):
    with pytest.raises(GatewayError) as refused:
        built(messages=[{"role": "user", "content": [part]}])
    assert (refused.value.kind, refused.value.param) == ("unsupported", param)


@pytest.mark.parametrize("uri", ["gs://bucket/x.png", "https://generativelanguage.googleapis.com/v1beta/files/x"])
def test_googles_own_addresses_are_passed_on(uri):
    body = built(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": uri}}]}])
    assert body["contents"][0]["parts"] == [{"fileData": {"fileUri": uri}}]


def test_a_picture_in_a_result_follows_the_responses():
    talk = rq.Conversation([rq.Message("user", [rq.Text("go")]), rq.Message("assistant", [rq.Call("a", "f", "{}")]),
                            rq.Message("tool", [rq.Result("a", [rq.Text("see"), rq.Image(data=PNG)], is_error=True)])])
    request = from_chat()
    request.conversation = talk
    parts = json.loads(GEMINI.build_request(request, to()))["contents"][2]["parts"]
    assert parts[0]["functionResponse"]["response"] == {"error": "see"} and parts[1]["inlineData"]["data"] == PNG


@pytest.mark.parametrize(("choice", "config"), [
    ("auto", {"mode": "AUTO"}), ("none", {"mode": "NONE"}), ("required", {"mode": "ANY"}),
    ({"type": "function", "function": {"name": "f"}}, {"mode": "ANY", "allowedFunctionNames": ["f"]})])
def test_every_tool_choice(choice, config):
    assert built(tools=[TOOL], tool_choice=choice)["toolConfig"] == {"functionCallingConfig": config}
    assert "toolConfig" not in built(tool_choice=choice if isinstance(choice, str) else None)


def test_tools_are_declared_in_googles_terms():
    body = built(tools=[TOOL, {"type": "function", "function": {"name": "2 b"}}, {"type": "custom", "custom": {"name": "patch"}}])
    first, second, third = body["tools"][0]["functionDeclarations"]
    assert first == {"name": "f", "description": "d", "parameters": {"type": "OBJECT", "properties": {"q": {"type": "INTEGER"}}}}
    assert second == {"name": "_2_b"} and list(third["parameters"]["properties"]) == ["input"]
    plain = built(to(flags=frozenset({"json_schema"})), tools=[TOOL])["tools"][0]["functionDeclarations"][0]
    assert plain["parametersJsonSchema"] == TOOL["function"]["parameters"]


@pytest.mark.parametrize(("name", "said"), [("ok_1.x:y-z", "ok_1.x:y-z"), ("a b/c", "a_b_c"), ("9x", "_9x"), ("", "_"), ("é" * 80, "_" * 64)])
def test_names_in_the_alphabet_of_the_api(name, said):
    assert safe_name(name) == said


def test_sampling_and_its_bounds():
    body = built(temperature=1.5, top_p=0.5, seed=3, presence_penalty=1, stop=[str(i) for i in range(9)], max_tokens=500)
    assert body["generationConfig"] == {"temperature": 1.5, "topP": 0.5, "seed": 3, "presencePenalty": 1, "maxOutputTokens": 500,
                                        "stopSequences": ["0", "1", "2", "3", "4"]}
    assert built(to(max_output=100), max_tokens=500)["generationConfig"]["maxOutputTokens"] == 100
    assert "seed" not in built(to(drop_params=frozenset({"seed"})), seed=3, top_p=0.5)["generationConfig"]
    with pytest.raises(GatewayError) as refused:
        built(n=2)
    assert (refused.value.kind, refused.value.param) == ("unsupported", "n")


@pytest.mark.parametrize(("model", "effort", "config"), [
    ("gemini-2.5-flash", "none", {"thinkingBudget": 0}), ("gemini-2.5-pro", "none", {"thinkingBudget": 128}),
    ("gemini-2.5-flash", "high", {"thinkingBudget": 24576, "includeThoughts": True}),
    ("gemini-2.5-pro", "xhigh", {"thinkingBudget": 32768, "includeThoughts": True}),
    ("gemini-3-flash-preview", "minimal", {"thinkingLevel": "minimal", "includeThoughts": True}),
    ("gemini-3-pro-preview", "none", {"thinkingLevel": "low"}), ("gemini-3.1-pro", "medium", {"thinkingLevel": "medium", "includeThoughts": True}),
    ("gemini-flash-latest", "low", {"thinkingLevel": "low", "includeThoughts": True}),
    ("gemini-2.0-flash", "high", None), ("gemma-3", "high", None)])
def test_effort_in_the_terms_of_the_family(model, effort, config):
    assert built(to(model=model), reasoning_effort=effort).get("generationConfig", {}).get("thinkingConfig") == config


def test_a_budget_leaves_room_for_the_answer():
    assert built(reasoning_effort="high", max_tokens=4000)["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 2000


def test_the_format_of_the_answer():
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object", "properties": {"a": {"const": "x"}}}}}
    config = built(response_format=wanted)["generationConfig"]
    assert config == {"responseMimeType": "application/json", "responseSchema": {
        "type": "OBJECT", "properties": {"a": {"type": "STRING", "enum": ["x"]}}}}
    assert built(response_format={"type": "json_object"})["generationConfig"] == {"responseMimeType": "application/json"}
    beside = built(response_format=wanted, tools=[TOOL])                  # refused together before Gemini 3
    assert "generationConfig" not in beside and '"const"' in beside["systemInstruction"]["parts"][0]["text"]
    assert "responseSchema" in built(to(model="gemini-3-pro"), response_format=wanted, tools=[TOOL])["generationConfig"]


def test_other_providers_own_tools_are_left_out():
    request = from_chat(tools=[TOOL])
    request.conversation.tools.append(rq.Tool("web_search", kind="server", payload={"type": "web_search_20250305"}))
    assert [list(tool) for tool in json.loads(GEMINI.build_request(request, to()))["tools"]] == [["functionDeclarations"]]
    request.conversation.tools = request.conversation.tools[1:]
    assert "tools" not in json.loads(GEMINI.build_request(request, to()))
    assert json.loads(GEMINI.build_request(request, to(flags=frozenset({"server_tools"}))))["tools"] == [{"googleSearch": {}}]


def test_only_thinking_that_google_signed_goes_back():
    request = from_chat()
    request.conversation = rq.Conversation([rq.Message("user", [rq.Text("u")]), rq.Message("assistant", [
        rq.Thinking("a", "s", owner="anthropic"), rq.Thinking("b", "t", owner="gemini"), rq.Thinking("c", owner="gemini"), rq.Text("x")])])
    assert json.loads(GEMINI.build_request(request, to()))["contents"][1]["parts"] == [
        {"text": "b", "thought": True, "thoughtSignature": "t"}, {"text": "x"}]
