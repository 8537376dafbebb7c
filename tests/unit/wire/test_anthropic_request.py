"""What Messages clients send: accepted leniently, refused by name, understood, and passed on as it came."""
import json

import pytest

from gateway.core.errors import GatewayError
from gateway.core.request import Call, Document, Image, Message, Opaque, Result, Text, Thinking, Thought
from gateway.wire.anthropic import ANTHROPIC
from gateway.wire.base import Outbound

from .anthropic_turns import request

TO = Outbound(model="claude-x", provider="p", stream=False)
PNG = "iVBORw0KGgoAAAA="


def passed(body: dict, operation="chat", **to) -> dict:
    parsed = ANTHROPIC.parse_request(json.dumps(body).encode(), operation)
    return json.loads(ANTHROPIC.build_request(parsed, Outbound(**{"model": "m", "provider": "p", "stream": False} | to)))


def talk(*messages, **fields):
    return ANTHROPIC.open(request(messages=list(messages), **fields))


def parts(*blocks, role="user"):
    return talk({"role": role, "content": list(blocks)}).messages[0].parts


# ---------------------------------------------------------------- refused by name
@pytest.mark.parametrize("change, path", [
    ({"max_tokens": None}, "max_tokens"), ({"max_tokens": 0}, "max_tokens"), ({"max_tokens": True}, "max_tokens"),
    ({"messages": None}, "messages"), ({"messages": []}, "messages"), ({"messages": "hi"}, "messages"),
    ({"messages": ["hi"]}, "messages.0"), ({"messages": [{"role": "tool", "content": ""}]}, "messages.0.role"),
    ({"messages": [{"role": "user", "content": 5}]}, "messages.0.content"),
    ({"messages": [{"role": "user", "content": [{"text": "x"}]}]}, "messages.0.content.0.type"),
    ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages.0.content.0.text"),
    ({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}, "messages.0.content.0.tool_use_id"),
    ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "messages.0.content.0.source"),
    ({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]}]}, "messages.0.content.0.name"),
    ({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text"}]}]}]},
     "messages.0.content.0.content.0.text"),
    ({"system": 5}, "system"), ({"system": [{"type": "text"}]}, "system.0.text"), ({"stream": "yes"}, "stream"),
    ({"temperature": "hot"}, "temperature"), ({"stop_sequences": [1]}, "stop_sequences.0"), ({"tools": [5]}, "tools.0"),
    ({"tools": [{"input_schema": {}}]}, "tools.0.name"), ({"tool_choice": {"type": "maybe"}}, "tool_choice.type"),
    ({"model": 5}, "model"),
])
def test_a_field_at_fault_is_named(change, path):
    with pytest.raises(GatewayError) as caught:
        request(**change)
    error = json.loads(ANTHROPIC.render_error(caught.value))
    assert (caught.value.kind, caught.value.param) == ("bad_request", path)
    assert error["error"]["type"] == "invalid_request_error" and path in error["error"]["message"]


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff", b'"x"', b"[" * 100_000, b'{"max_tokens":NaN}'])
def test_what_is_no_json_object_is_refused(raw):
    with pytest.raises(GatewayError) as caught:
        ANTHROPIC.parse_request(raw)
    assert caught.value.kind == "bad_request"


def test_half_an_emoji_becomes_a_replacement_character():
    parsed = ANTHROPIC.parse_request(b'{"max_tokens":5,"messages":[{"role":"user","content":"cut \\ud83e"}]}')
    assert json.loads(ANTHROPIC.build_request(parsed, TO))["messages"][0]["content"] == "cut \ufffd"


# ---------------------------------------------------------------- facts
def test_the_facts_of_a_request():
    parsed = request(stream=True, system="Be brief.", tools=[
        {"name": "f", "input_schema": {"type": "object"}}, {"type": "bash_20250124", "name": "bash"},
        {"type": "web_search_20250305", "name": "web_search"}],
        tool_choice={"type": "tool", "name": "f", "disable_parallel_tool_use": True},
        metadata={"user_id": json.dumps({"session_id": "0000-1111-2222"})},
        output_config={"format": {"type": "json_schema", "schema": {"type": "object"}}})
    assert (parsed.model, parsed.stream, parsed.max_tokens, parsed.clean) == ("m", True, 64, True)
    assert parsed.tools == {"f": {"type": "object"}, "bash": None}
    assert (parsed.tool_choice.mode, parsed.tool_choice.name, parsed.tool_choice.parallel) == ("named", "f", False)
    assert parsed.format.strict and parsed.format.schema == {"type": "object"}
    assert parsed.session_hint == "0000-1111-2222"
    assert parsed.chars > len("Be brief.hi")


def test_without_a_model_anybody_may_answer():
    assert request(model=None).model == "auto"


def test_counting_needs_no_limit_and_never_streams():
    parsed = ANTHROPIC.parse_request(b'{"messages":[{"role":"user","content":"hi"}],"tools":[],"stream":true}', "count_tokens")
    assert (parsed.stream, parsed.max_tokens, parsed.operation) == (False, None, "count_tokens")
    assert ANTHROPIC.upstream_path(parsed, TO) == "/messages/count_tokens"


def test_pictures_are_counted_in_results_too():
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    parsed = request(messages=[{"role": "user", "content": [image]}, {"role": "assistant", "content": [
        {"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [image, image]}]}])
    assert parsed.images == 3


# ---------------------------------------------------------------- in neutral form
def test_system_text_in_all_its_places():
    found = talk({"role": "user", "content": "hi"}, {"role": "system", "content": "note"}, system=[
        {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "b"}]).messages
    assert found == [Message("system", [Text("a", {"type": "ephemeral"}), Text("b")]), Message("user", [Text("hi")]),
                     Message("system", [Text("note")])]


def test_a_billing_line_is_for_anthropic_only():
    system = [{"type": "text", "text": "x-anthropic-billing-header: v=1;"}, {"type": "text", "text": "s"}]
    assert talk({"role": "user", "content": "hi"}, system=system).messages[0] == Message("system", [Text("s")])
    assert passed({"max_tokens": 5, "system": system, "messages": [{"role": "user", "content": "hi"}]})["system"] == system


def test_results_come_before_what_the_user_says_with_them():
    found = talk({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}]},
                 {"role": "user", "content": [{"type": "text", "text": "after"},
                                              {"type": "tool_result", "tool_use_id": "a", "content": "ok"},
                                              {"type": "tool_result", "tool_use_id": "b", "is_error": True}]}).messages
    assert found == [Message("assistant", [Call("a", "f", '{"x":1}')]),
                     Message("tool", [Result("a", [Text("ok")]), Result("b", [], is_error=True)]),
                     Message("user", [Text("after")])]


def test_thinking_belongs_to_its_maker():
    assert parts({"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "redacted_thinking", "data": "d"},
                 role="assistant") == [Thinking("hm", "s", "", "anthropic"), Thinking("", "", "d", "anthropic")]


@pytest.mark.parametrize("block, part", [
    ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}, Image(PNG, "image/png")),
    ({"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}, Image(url="https://x/y.png")),
    ({"type": "image", "source": {"type": "file", "file_id": "file_1"}}, Image(file_id="file_1")),
    ({"type": "document", "title": "T", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}},
     Document("application/pdf", "JVBE", title="T")),
    ({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "body"}},
     Document("text/plain", text="body")),
    ({"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}}, Document(url="https://x/y.pdf")),
    ({"type": "document", "source": {"type": "file", "file_id": "file_2"}}, Document(file_id="file_2")),
    ({"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}},
     Document("text/plain", text="a\nb")),
])
def test_pictures_and_documents(block, part):
    assert parts(block) == [part]


def test_a_search_result_is_a_document_that_remembers_what_it_was():
    block = {"type": "search_result", "source": "u", "title": "T", "content": [{"type": "text", "text": "found"}]}
    (part,) = parts(block)
    assert (part.text, part.title, part.extra["anthropic"]) == ("found", "T", block)


def test_blocks_of_server_tools_are_opaque():
    block = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": 1}}
    assert parts(block, role="assistant") == [Opaque("anthropic", "server_tool_use", block)]


@pytest.mark.parametrize("fields, thought", [
    ({}, None), ({"thinking": {"type": "disabled"}}, Thought(effort="none")),
    ({"thinking": {"type": "enabled", "budget_tokens": 2048}}, Thought(budget_tokens=2048)),
    ({"thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"effort": "high"}},
     Thought(effort="high", adaptive=True, summary="omitted")),
    ({"output_config": {"effort": "max"}}, Thought(effort="xhigh")),
])
def test_how_much_to_think(fields, thought):
    assert ANTHROPIC.open(request(**fields)).thought == thought


def test_tools_and_what_else_is_said():
    found = talk({"role": "user", "content": "hi"}, tools=[
        {"name": "f", "description": "d", "input_schema": {"type": "object"}, "strict": True, "defer_loading": True,
         "cache_control": {"type": "ephemeral"}}, {"type": "custom", "name": "g"}, {"type": "web_search_20250305", "name": "w"}],
        tool_choice={"type": "any"}, stop_sequences=["###"], top_k=5, metadata={"user_id": "u"}, context_management={"edits": []})
    f, g, w = found.tools
    assert (f.name, f.strict, f.extra, f.cache_control) == ("f", True, {"anthropic": {"defer_loading": True}},
                                                             {"type": "ephemeral"})
    assert (g.kind, g.parameters) == ("function", {"type": "object", "properties": {}})
    assert (w.kind, w.payload["type"]) == ("server", "web_search_20250305")
    assert (found.tool_choice.mode, found.sampling.stop, found.sampling.top_k, found.user) == ("required", ["###"], 5, "u")
    assert found.extra == {"anthropic": {"context_management": {"edits": []}}}


# ---------------------------------------------------------------- the same format upstream
def test_only_the_model_changes_in_a_body_that_needs_nothing():
    raw = b'{ "model" : "m","max_tokens":5,  "messages":[{"role":"user","content":"h\\u00e9","x":1.50}], "new_field":{"a":[1]} }'
    parsed = ANTHROPIC.parse_request(raw)
    assert ANTHROPIC.build_request(parsed, TO) == raw.replace(b'"m"', b'"claude-x"', 1)


def test_a_missing_model_is_added():
    assert passed({"max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]})["model"] == "m"


def test_a_history_that_the_api_would_refuse_is_mended():
    body = {"model": "m", "max_tokens": 5, "keep": 1.5, "system": [{"type": "text", "text": ""}, {"type": "text", "text": "s"}],
            "stop_sequences": ["", "x"], "tool_choice": {"type": "auto"}, "messages": [
                {"role": "user", "content": [{"type": "text", "text": " "}, {"type": "text", "text": "hi", "extra": 1}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "unsigned", "signature": ""},
                    {"type": "tool_use", "id": "a:1", "name": "f", "input": {}, "caller": {"type": "direct"}},
                    {"type": "tool_use", "id": "b", "name": "f", "input": {}}]},
                {"role": "user", "content": [{"type": "text", "text": "late"},
                                             {"type": "tool_result", "tool_use_id": "zzz", "content": "orphan"},
                                             {"type": "tool_result", "tool_use_id": "a:1", "content": "r", "cache_control": {}}]}]}
    out = passed(body)
    assert out["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "hi", "extra": 1}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a_1", "name": "f", "input": {}, "caller": {"type": "direct"}},
                                          {"type": "tool_use", "id": "b", "name": "f", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a_1", "content": "r", "cache_control": {}},
            {"type": "tool_result", "tool_use_id": "b", "content": "No result was returned for this call.", "is_error": True},
            {"type": "text", "text": "late"}]}]
    assert (out["system"], out["stop_sequences"], out["keep"]) == ([{"type": "text", "text": "s"}], ["x"], 1.5)
    assert "tool_choice" not in out


def test_unsigned_thinking_goes_back_to_who_wants_it():
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "thinking", "thinking": "t"},
                                                                                 {"type": "text", "text": "x"}]},
             {"role": "user", "content": "go"}]
    body = {"model": "m", "max_tokens": 5, "messages": turns}
    assert len(passed(body)["messages"][1]["content"]) == 1
    assert passed(body, flags=frozenset({"unsigned_thinking"}))["messages"] == turns


def test_a_pictures_type_is_what_its_bytes_say():
    body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": [
        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": PNG}}]}]}
    assert passed(body)["messages"][0]["content"][0]["source"]["media_type"] == "image/png"


def test_limits_and_names_of_the_target_are_kept():
    body = {"model": "m", "max_tokens": 9000, "top_k": 4, "thinking": {"type": "enabled", "budget_tokens": 8500},
            "messages": [{"role": "user", "content": "hi"}]}
    out = passed(body, max_output=4096, drop_params=frozenset({"top_k"}))
    assert (out["max_tokens"], out["thinking"]["budget_tokens"]) == (4096, 3072)
    assert "top_k" not in out
    assert passed(body, rename_params={"max_tokens": "max_output_tokens"})["max_output_tokens"] == 9000
