"""What a Gemini client asks: both spellings, facts of the request, the dialogue in neutral form, and what is refused where."""
import json

import pytest

from gateway.core import request as rq
from gateway.core.errors import GatewayError
from gateway.wire.gemini import GEMINI
from gateway.wire.gemini.keys import camel_keys
from tests.unit.wire.frames import dump
from tests.unit.wire.gemini_turns import CHAT, HELLO, WEATHER, asked, from_chat, opened, to


def test_model_and_stream_come_from_the_path():
    request = GEMINI.parse_request(dump({"contents": HELLO}), "chat", "org/m", True)
    assert (request.model, request.stream, request.wire) == ("org/m", True, "gemini")
    assert not GEMINI.parse_request(dump({"contents": HELLO}), "chat", "m", False).stream


def test_snake_case_is_the_same_request_and_user_data_keeps_its_keys():
    body = {"system_instruction": {"parts": [{"text": "s"}]},
            "contents": [{"parts": [{"inline_data": {"mime_type": "image/png", "data": "AA_-"}},
                                    {"function_response": {"name": "f", "response": {"snake_key": 1}}}]},
                         {"role": "model", "parts": [{"function_call": {"name": "f", "args": {"in_arg": {"x_y": 2}}},
                                                      "thought_signature": "sig"}]}],
            "tools": [{"function_declarations": [{"name": "f", "parameters": {
                "type": "OBJECT", "properties": {"in_arg": {"type": "OBJECT", "property_ordering": []}}}}]}],
            "generation_config": {"max_output_tokens": 5, "thinking_config": {"include_thoughts": True, "thinking_budget": 9}}}
    clear = camel_keys(body)
    assert clear["contents"][0]["parts"][1]["functionResponse"]["response"] == {"snake_key": 1}
    assert clear["contents"][1]["parts"][0]["functionCall"]["args"] == {"in_arg": {"x_y": 2}}
    assert "propertyOrdering" in clear["tools"][0]["functionDeclarations"][0]["parameters"]["properties"]["in_arg"]
    request = GEMINI.parse_request(dump(body), "chat", "m", False)
    assert request.max_tokens == 5 and request.images == 1 and list(request.tools) == ["f"]
    talk = GEMINI.open(request)
    assert talk.thought == rq.Thought(budget_tokens=9, include=True)
    image = next(part for message in talk.messages for part in message.parts if isinstance(part, rq.Image))
    assert image.data == "AA/+" and image.media_type == "image/png"


def test_facts_of_the_request():
    request = asked(tools=[{"functionDeclarations": [WEATHER]}, {"googleSearch": {}}],
                    toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["weather"]}},
                    generationConfig={"candidateCount": 2, "maxOutputTokens": 9, "responseMimeType": "application/json",
                                      "responseSchema": {"type": "ARRAY", "items": {"type": "STRING"}, "minItems": "2"}})
    assert request.tools == {"weather": {"type": "object", "required": ["city"],
                                         "properties": {"city": {"type": ["string", "null"]}}}}
    assert request.tool_choice == rq.ToolChoice("named", "weather")
    assert (request.n, request.max_tokens) == (2, 9)
    assert request.format.schema == {"type": "array", "items": {"type": "string"}, "minItems": 2}


@pytest.mark.parametrize(("mode", "names", "choice"), [
    ("AUTO", None, "auto"), ("NONE", None, "none"), ("ANY", None, "required"), ("ANY", ["weather", "b"], "required"),
    ("VALIDATED", None, "auto"), ("any", None, "required")])
def test_every_mode_of_calling(mode, names, choice):
    calling = {"mode": mode, **({"allowedFunctionNames": names} if names else {})}
    request = asked(tools={"functionDeclarations": [WEATHER]}, toolConfig={"functionCallingConfig": calling})
    assert request.tool_choice.mode == choice
    assert asked(toolConfig={"functionCallingConfig": calling}).tool_choice is None      # means nothing without functions


@pytest.mark.parametrize(("fields", "param"), [
    ({"contents": None}, "contents"),
    ({"contents": []}, "contents"),
    ({"contents": ["x"]}, "contents.0"),
    ({"contents": [{"role": "system", "parts": []}]}, "contents.0.role"),
    ({"contents": [{"parts": [{"text": 5}]}]}, "contents.0.parts.0.text"),
    ({"contents": [{"parts": [{"functionCall": {"args": {}}}]}]}, "contents.0.parts.0.functionCall.name"),
    ({"contents": [{"parts": [{"functionCall": {"name": "f", "args": []}}]}]}, "contents.0.parts.0.functionCall.args"),
    ({"contents": [{"parts": [{"inlineData": {"mimeType": "image/png"}}]}]}, "contents.0.parts.0.inlineData.data"),
    ({"generationConfig": {"temperature": "hot"}}, "generationConfig.temperature"),
    ({"generationConfig": {"stopSequences": [1]}}, "generationConfig.stopSequences.0"),
    ({"generationConfig": {"candidateCount": -1}}, "generationConfig.candidateCount"),
    ({"tools": [{"functionDeclarations": [{}]}]}, "tools.0.functionDeclarations.0.name"),
    ({"toolConfig": {"functionCallingConfig": {"mode": "SOME"}}}, "toolConfig.functionCallingConfig.mode")])
def test_what_nobody_can_read_is_refused_with_its_path(fields, param):
    with pytest.raises(GatewayError) as refused:
        asked(**fields)
    assert refused.value.param == param
    error = json.loads(GEMINI.render_error(refused.value))["error"]
    assert error["code"] == 400 and error["status"] == "INVALID_ARGUMENT" and param in error["message"]


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b'"x"', b"{\"contents\":" + b"[" * 5000 + b"]" * 5000 + b"}"])
def test_a_body_that_is_no_object_is_refused(raw):
    with pytest.raises(GatewayError) as refused:
        GEMINI.parse_request(raw, "chat", "m", False)
    assert refused.value.status == 400


def test_count_tokens_may_wrap_its_request():
    wrapped = GEMINI.parse_request(dump({"generateContentRequest": {"model": "models/m", "contents": HELLO}}), "count_tokens", "m")
    plain = GEMINI.parse_request(dump({"contents": HELLO}), "count_tokens", "m")
    assert wrapped.chars == plain.chars > 0
    with pytest.raises(GatewayError) as refused:
        GEMINI.parse_request(dump({"generateContentRequest": {}}), "count_tokens", "m")
    assert refused.value.param == "generateContentRequest.contents"


def test_the_dialogue_in_neutral_form():
    talk = opened(
        systemInstruction={"parts": [{"text": "s"}], "role": "user"},
        contents=[{"parts": [{"text": "look"}, {"fileData": {"fileUri": "https://x/y.png", "mimeType": "image/png"}}]},
                  {"role": "model", "parts": [{"text": "hm", "thought": True, "thoughtSignature": "t"}, {"text": "calling"},
                                              {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "sig"},
                                              {"functionCall": {"name": "f", "args": {"a": 2}}}]},
                  {"role": "user", "parts": [{"text": "and"}, {"functionResponse": {"name": "f", "response": {"result": "one"}}},
                                             {"functionResponse": {"name": "f", "response": {"error": {"no": 2}}}}]}])
    system, user, model, results, more = talk.messages
    assert [m.role for m in talk.messages] == ["system", "user", "assistant", "tool", "user"]
    assert user.parts[1] == rq.Image(url="https://x/y.png", media_type="image/png")
    thought, text, first, second = model.parts
    assert thought == rq.Thinking("hm", "t", owner="gemini") and text.text == "calling"
    assert first.signature == "sig" and first.id != second.id and first.arguments == '{"a":1}'
    assert [part.call_id for part in results.parts] == [first.id, second.id]
    assert results.parts[0].parts == [rq.Text("one")] and not results.parts[0].is_error
    assert results.parts[1].parts == [rq.Text('{"no":2}')] and results.parts[1].is_error
    assert more.parts == [rq.Text("and")] and system.parts == [rq.Text("s")]


def test_responses_find_their_calls_by_id_before_order():
    call = {"functionCall": {"name": "f"}}
    talk = opened(contents=[
        *HELLO, {"role": "model", "parts": [{"functionCall": {"name": "f", "id": "x"}}, {"functionCall": {"name": "f", "id": "y"}}, call]},
        {"parts": [{"functionResponse": {"name": "f", "id": "y", "response": {}}}, {"functionResponse": {"name": "f", "response": {}}},
                   {"functionResponse": {"name": "f", "response": {}}}, {"functionResponse": {"name": "g", "response": {}}}]}])
    calls = [part.id for part in talk.messages[1].parts]
    found = [part.call_id for part in talk.messages[2].parts]
    assert found[:3] == ["y", "x", calls[2]] and found[3] not in calls


def test_a_file_at_google_is_no_address_for_others():
    uri = "https://generativelanguage.googleapis.com/v1beta/files/abc"
    talk = opened(contents=[{"parts": [{"fileData": {"fileUri": uri, "mimeType": "application/pdf"}}]}])
    assert talk.messages[0].parts == [rq.Document("application/pdf", file_id=uri)]


def test_googles_own_tools_are_never_another_providers_functions():
    talk = opened(tools=[{"googleSearch": {}}, {"functionDeclarations": [WEATHER]}])
    assert [(tool.name, tool.kind) for tool in talk.tools] == [("weather", "function"), ("googleSearch", "server")]
    request = asked(tools=[{"googleSearch": {}}, {"functionDeclarations": [WEATHER]}])
    request.conversation = GEMINI.open(request)
    sent = json.loads(CHAT.build_request(request, to()))
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["weather"]


@pytest.mark.parametrize(("thinking", "thought"), [
    ({"thinkingBudget": 0}, rq.Thought("none", 0)), ({"thinkingBudget": -1}, None), ({"thinkingBudget": 2048}, rq.Thought(None, 2048)),
    ({"thinkingLevel": "LOW"}, rq.Thought("low")), ({"includeThoughts": True}, rq.Thought(include=True)),
    ({"includeThoughts": False}, None), ({}, None)])
def test_how_much_to_think(thinking, thought):
    assert opened(generationConfig={"thinkingConfig": thinking}).thought == thought


def test_the_same_format_goes_up_as_it_came():
    raw = b'{ "contents" : [{"parts":[{"text":"hi","novel_field":1}]}], "safety_settings":null, "newField": {"x_y": 1.50} }'
    request = GEMINI.parse_request(raw, "chat", "m", True)
    assert GEMINI.build_request(request, to()) is request.raw and request.raw == raw


def test_what_the_target_cannot_take_is_changed_and_nothing_else():
    request = asked(generationConfig={"maxOutputTokens": 900, "seed": 1}, labels={"a_b": "c"})
    cut = json.loads(GEMINI.build_request(request, to(max_output=100)))
    assert cut["generationConfig"] == {"maxOutputTokens": 100, "seed": 1} and cut["labels"] == {"a_b": "c"}
    dropped = json.loads(GEMINI.build_request(request, to(drop_params=frozenset({"seed"}))))
    assert dropped["generationConfig"] == {"maxOutputTokens": 900}
    assert request.body["generationConfig"]["seed"] == 1                 # other targets still get it


@pytest.mark.parametrize(("model", "stream", "path"), [
    ("gemini-2.5-pro", True, "/models/gemini-2.5-pro:streamGenerateContent?alt=sse"),
    ("gemini-2.5-pro", False, "/models/gemini-2.5-pro:generateContent"),
    ("tunedModels/a b", False, "/tunedModels/a%20b:generateContent")])
def test_the_path_of_an_upstream(model, stream, path):
    assert GEMINI.upstream_path(from_chat(), to(model=model, stream=stream)) == path
