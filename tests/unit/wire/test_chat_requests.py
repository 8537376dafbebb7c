"""A chat request goes up as it came, with as little changed as possible; its facts are what routing and the turn need."""
import json
from typing import Any

import pytest

from gateway.core import request as rq
from gateway.core.errors import GatewayError
from tests.unit.wire.frames import CHAT, asked, dump, to

HI = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def sent(body: dict[str, Any] | bytes, **target: Any) -> dict[str, Any]:
    request = CHAT.parse_request(body if isinstance(body, bytes) else dump(body))
    return json.loads(CHAT.build_request(request, to(**{"stream": request.stream, **target})))


# ---------------------------------------------------------------- facts
def test_the_facts_of_a_request():
    request = asked(
        stream=True, stream_options={"include_usage": True}, n=2, max_completion_tokens=50, tool_choice="required",
        parallel_tool_calls=False, prompt_cache_key="k", tools=[TOOL, {"type": "custom", "custom": {"name": "g"}}],
        functions=[{"name": "old", "parameters": {"type": "object"}}],
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True}},
        messages=[{"role": "user", "content": [{"type": "text", "text": "12345"},
                                               {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}])
    assert (request.model, request.stream, request.include_usage, request.n, request.max_tokens) == ("asked", True, True, 2, 50)
    assert request.tools == {"f": {"type": "object"}, "g": None, "old": {"type": "object"}}
    assert request.tool_choice == rq.ToolChoice("required", parallel=False)
    assert request.format == rq.Format("json_schema", {"type": "object"}, True, "n")
    assert (request.images, request.clean, request.session_hint) == (1, True, "k")
    assert 5 < request.chars < 200


@pytest.mark.parametrize(("choice", "meant"), [
    ("auto", rq.ToolChoice("auto")), ("none", rq.ToolChoice("none")), ("any", rq.ToolChoice("required")),
    ({"type": "function", "function": {"name": "f"}}, rq.ToolChoice("named", "f")),
    ({"type": "custom", "custom": {"name": "f"}}, rq.ToolChoice("named", "f")),
    ({"type": "function", "name": "f"}, rq.ToolChoice("named", "f")),
    ({"type": "allowed_tools", "allowed_tools": {}}, rq.ToolChoice("auto")),
])
def test_tool_choices(choice, meant):
    assert asked(tools=[TOOL], tool_choice=choice).tool_choice == meant


def test_usage_counts_as_asked_for_in_streams_only():
    assert not asked(stream_options={"include_usage": True}).include_usage
    assert not asked(stream=True).include_usage


# ---------------------------------------------------------------- passing on
def test_a_clean_body_keeps_every_byte_but_the_models():
    raw = b'{ "messages" : [{"role":"user","content":"\\u00e9 \\"model\\""}],\n"model":"x/y", "temperature":1.0, "zz":[1e2]}'
    assert CHAT.build_request(CHAT.parse_request(raw), to(model="org/up")) == raw.replace(b'"x/y"', b'"org/up"')


def test_usage_is_always_asked_of_a_stream():
    raw = b'{"model":"m","messages":[{"role":"user","content":"x"}],"stream":true}'
    assert CHAT.build_request(CHAT.parse_request(raw), to(stream=True)) == (
        raw.replace(b'"m"', b'"up"')[:-1] + b',"stream_options":{"include_usage":true}}')
    assert sent({"messages": [HI], "stream": True, "stream_options": {"include_usage": False, "x": 1}})["stream_options"] == {
        "include_usage": True, "x": 1}
    assert "stream_options" not in sent({"messages": [HI], "stream": True}, flags=frozenset({"no_stream_options"}))
    assert "stream_options" not in sent({"messages": [HI], "stream": True, "stream_options": {"include_usage": True}},
                                        flags=frozenset({"no_stream_options"}))
    assert "stream_options" not in sent({"model": "m", "messages": [HI], "stream_options": {"include_usage": True}})


def test_a_missing_model_is_put_in():
    assert sent({"messages": [HI]})["model"] == "up"


def test_a_target_may_be_streamed_although_the_client_is_not():
    assert sent({"model": "m", "messages": [HI]}, stream=True)["stream"] is True
    assert sent({"model": "m", "messages": [HI], "stream": True}, stream=False)["stream"] is False


def test_parameters_are_dropped_and_renamed_at_the_top():
    out = sent({"model": "m", "messages": [HI], "max_tokens": 5, "seed": 1, "x": {"seed": 2}},
               drop_params=frozenset({"seed"}), rename_params={"max_tokens": "max_completion_tokens"})
    assert out == {"model": "up", "messages": [HI], "x": {"seed": 2}, "max_completion_tokens": 5}


def test_numbers_of_any_size_survive():
    raw = b'{"model":"m","model":"m","messages":[{"role":"user","content":"x"}],"seed":1,"big":123456789012345678901234567890}'
    out = CHAT.build_request(CHAT.parse_request(raw), to())
    assert b"123456789012345678901234567890" in out and out.count(b'"model"') == 1


def test_developer_is_system_where_it_is_not_known():
    body = {"model": "m", "messages": [{"role": "developer", "content": "x"}, HI]}
    assert sent(body)["messages"][0]["role"] == "system"
    assert sent(body, flags=frozenset({"developer_role"}))["messages"][0]["role"] == "developer"


# ---------------------------------------------------------------- mending
@pytest.mark.parametrize(("given", "mended"), [
    ({"role": "user", "content": ["a", {"text": "b"}]},
     {"role": "user", "content": [{"type": "text", "text": "a"}, {"text": "b", "type": "text"}]}),
    ({"role": "user", "content": [{"type": "image_url", "image_url": "https://x/y.png"}]},
     {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]}),
    ({"role": "assistant", "content": None}, {"role": "assistant", "content": ""}),
    ({"role": "assistant", "content": "a", "tool_calls": []}, {"role": "assistant", "content": "a"}),
])
def test_messages_are_mended(given, mended):
    assert sent({"model": "m", "messages": [HI, given], "unknown": 1}) == {"model": "up", "messages": [HI, mended], "unknown": 1}


def test_calls_without_ids_are_paired_in_order():
    calls = [{"function": {"name": "f", "arguments": {"a": 1}}}, {"function": {"name": "g"}}]
    out = sent({"model": "m", "messages": [HI, {"role": "assistant", "content": None, "tool_calls": calls},
                                           {"role": "tool", "content": "1"}, {"role": "tool", "content": None}]})["messages"]
    assert out[1]["tool_calls"] == [
        {"id": "call_auto_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},
        {"id": "call_auto_2", "type": "function", "function": {"name": "g", "arguments": "{}"}}]
    assert out[2:] == [{"role": "tool", "content": "1", "tool_call_id": "call_auto_1"},
                       {"role": "tool", "content": "", "tool_call_id": "call_auto_2"}]


def test_results_of_calls_that_nobody_knows_get_ids_of_their_own():
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}
    out = sent({"model": "m", "messages": [HI, {"role": "tool", "content": "a"}, call, {"role": "tool", "content": "b"},
                                           {"role": "tool", "content": "c"}]})["messages"]
    assert [message["tool_call_id"] for message in out if message["role"] == "tool"] == ["call_auto_1", "c", "call_auto_2"]


@pytest.mark.parametrize(("fields", "left"), [
    ({"tools": [], "tool_choice": "auto", "parallel_tool_calls": True}, {}), ({"tools": None}, {}), ({"tool_choice": "none"}, {}),
    ({"max_tokens": 0}, {}), ({"max_completion_tokens": -1}, {}), ({"stop": None, "seed": 1}, {"seed": 1}),
    ({"tools": [{"function": {"name": "f"}}]}, {"tools": [{"type": "function", "function": {"name": "f"}}]}),
    ({"tools": [{"name": "f", "input_schema": {"type": "object"}}]},
     {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]}),
    ({"tools": [TOOL], "tool_choice": "any"}, {"tools": [TOOL], "tool_choice": "required"}),
    ({"tools": [TOOL], "tool_choice": {"type": "function", "name": "f"}},
     {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "f"}}}),
])
def test_options_are_mended(fields, left):
    assert sent({"model": "m", "messages": [HI], **fields}) == {"model": "up", "messages": [HI], **left}


def test_half_an_emoji_does_not_go_up():
    out = CHAT.build_request(CHAT.parse_request(b'{"messages":[{"role":"user","content":"a \\ud83d b \\ud83d\\ude00"}]}'), to())
    assert json.loads(out)["messages"][0]["content"] == "a \ufffd b 😀"


# ---------------------------------------------------------------- opening and building
def opened(**fields: Any) -> rq.Conversation:
    return CHAT.open(asked(**fields))


def foreign(talk: rq.Conversation, **target: Any) -> dict[str, Any]:
    request = rq.Request(wire="anthropic", raw=b"{}", body=None, model="m", stream=False, conversation=talk)
    return json.loads(CHAT.build_request(request, to(**target)))


def test_every_part_is_opened():
    parts = [{"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}},
             {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ==", "detail": "low"}},
             {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
             {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "mp3"}},
             {"type": "file", "file": {"file_data": "data:application/pdf;base64,QQ==", "filename": "a.pdf"}},
             {"type": "file", "file": {"file_id": "file-1"}}, {"type": "video_url", "video_url": {"url": "v"}}]
    [message] = opened(messages=[{"role": "user", "content": parts, "name": "ann"}]).messages
    assert message.name == "ann"
    assert message.parts == [
        rq.Text("t", {"type": "ephemeral"}), rq.Image(data="QQ==", media_type="image/png", detail="low"),
        rq.Image(url="https://x/y.png"), rq.Document(media_type="audio/mpeg", data="QQ=="),
        rq.Document(media_type="application/pdf", data="QQ==", title="a.pdf"), rq.Document(file_id="file-1"),
        rq.Opaque("openai-chat", "video_url", parts[-1])]


def test_a_tool_turn_is_opened():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"},
            "extra_content": {"google": {"thought_signature": "sig"}}}
    messages = [{"role": "system", "content": "s"}, HI,
                {"role": "assistant", "content": None, "reasoning_content": "hm", "refusal": "no", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c", "content": "42"}]
    assert opened(messages=messages).messages[2:] == [
        rq.Message("assistant", [rq.Thinking("hm", owner="openai-chat"), rq.Refusal("no"),
                                 rq.Call("c", "f", "{}", signature="sig")]),
        rq.Message("tool", [rq.Result("c", [rq.Text("42")], "f")])]


def test_the_form_before_tools_is_opened_as_tools():
    messages = [HI, {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
                {"role": "function", "name": "f", "content": "42"}]
    talk = opened(messages=messages, functions=[{"name": "f"}], function_call={"name": "f"})
    call, result = talk.messages[1].parts[0], talk.messages[2].parts[0]
    assert isinstance(call, rq.Call) and isinstance(result, rq.Result)
    assert call.id == result.call_id
    assert (talk.tools[0].name, talk.tool_choice) == ("f", rq.ToolChoice("named", "f"))


@pytest.mark.parametrize(("fields", "thought"), [
    ({}, None), ({"reasoning_effort": "high"}, rq.Thought("high")), ({"reasoning_effort": "maximum"}, rq.Thought("xhigh")),
    ({"reasoning_effort": "auto"}, None), ({"reasoning": {"effort": "low"}}, rq.Thought("low")),
    ({"reasoning": {"max_tokens": 500}}, rq.Thought(budget_tokens=500)), ({"reasoning_effort": "off"}, rq.Thought("none")),
])
def test_how_much_to_think(fields, thought):
    assert opened(**fields).thought == thought


def test_options_are_opened():
    talk = opened(temperature=0.5, stop="x", max_tokens=3, user="u", metadata={"a": "b"}, unknown=[1], n=2)
    assert (talk.sampling.temperature, talk.sampling.stop, talk.sampling.max_tokens, talk.sampling.n) == (0.5, ["x"], 3, 2)
    assert (talk.user, talk.metadata, talk.extra) == ("u", {"a": "b"}, {"openai-chat": {"unknown": [1]}})


def test_a_foreign_dialogue_is_built():
    talk = rq.Conversation(
        [rq.Message("system", [rq.Text("s")]), rq.Message("user", [rq.Text("u")]),
         rq.Message("assistant", [rq.Thinking("hm", signature="x", owner="anthropic"), rq.Text("t"), rq.Call("c", "f", "{}")]),
         rq.Message("tool", [rq.Result("c", [rq.Text("r"), rq.Image(data="QQ==", media_type="image/png")]), rq.Text("after")])],
        tools=[rq.Tool("f", "d", {"type": "object"}, strict=True), rq.Tool("web_search", kind="server", payload={}, extra={"wire": "x"})],
        tool_choice=rq.ToolChoice("named", "f", False), thought=rq.Thought(budget_tokens=5000),
        format=rq.Format("json_schema", {"type": "object"}, True), sampling=rq.Sampling(max_tokens=9000, stop=list("abcde")),
        user="u", extra={"anthropic": {"container": "x"}, "openai-chat": {"seed": 4}})
    assert foreign(talk, max_output=4096, stream=True) == {
        "model": "up", "stream": True, "stream_options": {"include_usage": True}, "max_tokens": 4096, "stop": list("abcd"),
        "messages": [
            {"role": "system", "content": "s"}, {"role": "user", "content": "u"},
            {"role": "assistant", "content": "t", "reasoning_content": "hm",
             "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "r"},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}},
                                         {"type": "text", "text": "after"}]}],
        "tools": [{"type": "function",
                   "function": {"name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}}],
        "tool_choice": {"type": "function", "function": {"name": "f"}}, "parallel_tool_calls": False, "reasoning_effort": "medium",
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}, "strict": True}},
        "user": "u", "seed": 4}


def test_results_stand_directly_after_their_calls():
    talk = rq.Conversation([
        rq.Message("user", [rq.Text("q")]), rq.Message("assistant", [rq.Call("a", "f", "{}"), rq.Call("b", "f", "{}")]),
        rq.Message("assistant", [rq.Text("checking")]),
        rq.Message("tool", [rq.Result("b", [rq.Text("rb")]), rq.Result("a", [rq.Text("ra")]), rq.Result("z", [rq.Text("orphan")])]),
        rq.Message("assistant", [rq.Call("c", "f", "{}")]), rq.Message("user", [rq.Text("well?")])])
    told = [(m["role"], m.get("tool_call_id") or m["content"]) for m in foreign(talk)["messages"]]
    assert told == [("user", "q"), ("assistant", None), ("tool", "a"), ("tool", "b"), ("assistant", "checking"),
                    ("user", "orphan"), ("assistant", None), ("tool", "c"), ("user", "well?")]


def test_what_cannot_be_said_is_unsupported():
    with pytest.raises(GatewayError) as refused:
        foreign(rq.Conversation([rq.Message("user", [rq.Image(file_id="file-1")])]))
    assert refused.value.kind == "unsupported"


def test_documents_are_files_or_text():
    parts = [rq.Document(text="body", title="t"), rq.Document(media_type="application/pdf", data="QQ=="), rq.Document(file_id="f")]
    [message] = foreign(rq.Conversation([rq.Message("user", parts)]))["messages"]
    assert message["content"] == [
        {"type": "text", "text": "t\n\nbody"},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,QQ==", "filename": "document.pdf"}},
        {"type": "file", "file": {"file_id": "f"}}]


def test_the_path():
    assert CHAT.upstream_path(asked(), to()) == "/chat/completions"


def test_nulls_of_a_large_body_are_left_out_too():
    request = asked(messages=[{"role": "user", "content": "x" * 5_000}], temperature=None, unknown=None, seed=0)
    built = json.loads(CHAT.build_request(request, to()))
    assert set(built) == {"model", "messages", "seed"}
