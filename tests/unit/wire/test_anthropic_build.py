"""Dialogues from other formats, said in Anthropic's."""
import pytest

from gateway.core.errors import GatewayError
from gateway.core.request import (
    Call,
    Conversation,
    Document,
    Format,
    Image,
    Message,
    Opaque,
    Refusal,
    Result,
    Sampling,
    Text,
    Thinking,
    Thought,
    Tool,
    ToolChoice,
)

from .anthropic_turns import sent, user

JPEG = "/9j/4AAQSkZJRg=="
F = Tool("f", "does f", {"type": "object", "properties": {}})


def body(*messages, tools=(), to=None, **fields):
    return sent(Conversation(list(messages), list(tools), **fields), **to or {})


def turns(*messages, **more):
    return body(*messages, **more)["messages"]


# ---------------------------------------------------------------- turns
def test_the_simplest_request():
    assert body(user("hi")) == {"model": "claude-x", "max_tokens": 32000, "messages": [{"role": "user", "content": "hi"}]}
    assert body(user("hi"), to={"stream": True})["stream"] is True


def test_instructions_are_gathered_at_the_top():
    out = body(Message("system", [Text("a")]), user("hi"), Message("developer", [Text("b", {"type": "ephemeral"})]))
    assert out["system"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}}]
    assert out["messages"] == [{"role": "user", "content": "hi"}]


def test_instructions_alone_are_what_the_user_says():
    out = body(Message("system", [Text("a")]))
    assert out["messages"] == [{"role": "user", "content": "a"}] and "system" not in out


def test_turns_alternate_and_begin_with_the_user():
    out = turns(Message("assistant", [Text("a")]), user("b"), user("c"), Message("assistant", [Text("d ")]))
    assert [t["role"] for t in out] == ["user", "assistant", "user", "assistant"]
    assert out[2]["content"] == [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]
    assert out[3]["content"] == "d"


def test_blank_text_is_left_out():
    assert turns(user("", "x", "  "), Message("assistant", [Text("")]), user("y"))[0]["content"] == [
        {"type": "text", "text": "x"}, {"type": "text", "text": "y"}]


# ---------------------------------------------------------------- calls and results
def test_results_stand_behind_their_calls_in_the_order_of_the_calls():
    out = turns(user("q"), Message("assistant", [Text("I look."), Call("a", "f", '{"x": 1}'), Call("b", "f", "{}")]),
                Message("tool", [Result("b", [Text("rb")])]), Message("tool", [Result("a", [Text("ra")], is_error=True)]), user("?"))
    assert out[1]["content"] == [{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
                                 {"type": "tool_use", "id": "b", "name": "f", "input": {}}]
    assert out[2]["content"] == [{"type": "tool_result", "tool_use_id": "a", "content": "ra", "is_error": True},
                                 {"type": "tool_result", "tool_use_id": "b", "content": "rb"}, {"type": "text", "text": "?"}]


def test_missing_results_are_told_and_orphans_dropped():
    out = turns(user("q"), Message("assistant", [Call("a", "f", "{}")]), Message("tool", [Result("zzz", [Text("x")])]), user("go"))
    assert [b["type"] for b in out[2]["content"]] == ["tool_result", "text"]
    assert out[2]["content"][0]["is_error"] is True
    assert turns(user("q"), Message("assistant", [Call("a", "f", "{}")]))[-1]["content"][0]["tool_use_id"] == "a"


def test_a_result_that_comes_turns_later_still_answers_its_call():
    out = turns(user("q"), Message("assistant", [Call("a", "f", "{}")]), user("wait"), Message("tool", [Result("a", [Text("r")])]))
    assert out[2]["content"] == [{"type": "tool_result", "tool_use_id": "a", "content": "r"}, {"type": "text", "text": "wait"}]


def test_ids_are_made_fit_and_unique_in_calls_and_results_alike():
    out = turns(user("q"), Message("assistant", [Call("call:1", "f", "{}")]), Message("tool", [Result("call:1", [Text("one")])]),
                Message("assistant", [Call("call:1", "f", "{}")]), Message("tool", [Result("call:1", [Text("two")])]))
    assert [(b["id"]) for t in out if t["role"] == "assistant" for b in t["content"]] == ["call_1", "call_1_2"]
    assert [(b["tool_use_id"], b["content"]) for t in out[1:] if t["role"] == "user" for b in t["content"]] == [
        ("call_1", "one"), ("call_1_2", "two")]


@pytest.mark.parametrize("call, given", [
    (Call("a", "f", ""), {}), (Call("a", "f", "[1]"), {"arguments": [1]}), (Call("a", "f", '{"cut'), {"arguments": '{"cut'}),
    (Call("a", "f", "*** Begin", kind="custom"), {"input": "*** Begin"}),
])
def test_input_is_always_an_object(call, given):
    assert turns(user("q"), Message("assistant", [call]))[1]["content"][0]["input"] == given


def test_pictures_in_results_stay_there():
    out = turns(user("q"), Message("assistant", [Call("a", "f", "{}")]),
                Message("tool", [Result("a", [Text("see"), Image(JPEG, "image/jpg")])]))
    assert out[2]["content"][0]["content"] == [{"type": "text", "text": "see"}, {
        "type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": JPEG}}]


# ---------------------------------------------------------------- parts
@pytest.mark.parametrize("part, block", [
    (Image(url="https://x/y.png"), {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}),
    (Image(url=f"data:image/png;base64,{JPEG}"),
     {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": JPEG}}),
    (Document("application/pdf", "JVBE", title="T"),
     {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}, "title": "T"}),
    (Document("text/markdown", "IyBI"), {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "# H"}}),
    (Document(text="body"), {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "body"}}),
    (Document(url="https://x/y.pdf"), {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}}),
    (Text("t", {"type": "ephemeral"}), {"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}}),
])
def test_parts(part, block):
    assert turns(Message("user", [part]))[0]["content"] == [block]


@pytest.mark.parametrize("part", [
    Document("audio/wav", "AAAA"), Document("video/mp4", "AAAA"), Document("application/msword", "AAAA"),
    Image("Qk0=", "image/bmp"), Image(file_id="file-abc"), Document(file_id="file-abc"),
])
def test_what_cannot_be_said_names_its_place(part):
    with pytest.raises(GatewayError) as caught:
        body(user("x"), Message("user", [Text("look"), part]))
    assert (caught.value.kind, caught.value.param) == ("unsupported", "messages.1.content.1")


def test_several_choices_cannot_be_asked():
    with pytest.raises(GatewayError) as caught:
        body(user("x"), sampling=Sampling(n=2))
    assert (caught.value.kind, caught.value.param) == ("unsupported", "n")


def test_only_its_own_signed_thinking_goes_back():
    out = turns(user("q"), Message("assistant", [Thinking("a", "sig", owner="anthropic"), Thinking("b"), Thinking("c", "x", owner="gemini"),
                                                 Thinking(redacted="d", owner="anthropic"), Text("t")]), user("?"))
    assert out[1]["content"] == [{"type": "thinking", "thinking": "a", "signature": "sig"},
                                 {"type": "redacted_thinking", "data": "d"}, {"type": "text", "text": "t"}]


def test_refusals_are_text_and_strange_parts_go():
    out = turns(user("q"), Message("assistant", [Refusal("no"), Opaque("openai-responses", "reasoning", {})]), user("?"))
    assert out[1]["content"] == "no"


# ---------------------------------------------------------------- tools
def test_tools_get_an_object_schema():
    tools = body(user("x"), tools=[Tool("a"), Tool("b", parameters={"properties": {"x": {}}}), Tool("c", "d", strict=True)])["tools"]
    assert tools == [{"name": "a", "input_schema": {"type": "object", "properties": {}}},
                     {"name": "b", "input_schema": {"properties": {"x": {}}, "type": "object"}},
                     {"name": "c", "description": "d", "input_schema": {"type": "object", "properties": {}}}]


@pytest.mark.parametrize("grammar", [
    {"type": "custom", "format": {"type": "grammar", "syntax": "lark", "definition": "start: X"}},
    {"type": "custom", "custom": {"format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: X"}}}},
])
def test_a_freeform_tool_takes_one_string(grammar):
    (tool,) = body(user("x"), tools=[Tool("patch", "Edits.", kind="custom", payload=grammar)])["tools"]
    assert tool["input_schema"] == {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    assert "start: X" in tool["description"]


def test_tools_of_other_providers_are_not_offered():
    search = Tool("web_search", kind="server", payload={"type": "web_search"})
    assert "tools" not in body(user("x"), tools=[search])
    assert body(user("x"), tools=[search], to={"flags": frozenset({"server_tools"})})["tools"][0]["type"] == "web_search_20250305"


@pytest.mark.parametrize("said, wanted", [
    (ToolChoice("auto"), {"type": "auto"}), (ToolChoice("required"), {"type": "any"}), (ToolChoice("none"), {"type": "none"}),
    (ToolChoice("named", "f"), {"type": "tool", "name": "f"}), (ToolChoice("named", "gone"), {"type": "any"}),
    (ToolChoice(parallel=False), {"type": "auto", "disable_parallel_tool_use": True}),
])
def test_tool_choice(said, wanted):
    assert body(user("x"), tools=[F], tool_choice=said)["tool_choice"] == wanted
    assert "tool_choice" not in body(user("x"), tool_choice=said)


# ---------------------------------------------------------------- knobs
def test_sampling():
    out = body(user("x"), sampling=Sampling(max_tokens=9, temperature=1.7, top_p=0.5, top_k=3, stop=["a", " "], seed=1, presence_penalty=1))
    assert {k: v for k, v in out.items() if k not in ("model", "messages")} == {
        "max_tokens": 9, "temperature": 1, "top_k": 3, "stop_sequences": ["a"]}
    assert body(user("x"), sampling=Sampling(top_p=0.5))["top_p"] == 0.5


def test_the_limit_is_the_models_own_at_most():
    assert body(user("x"), to={"max_output": 4096})["max_tokens"] == 4096
    assert body(user("x"), sampling=Sampling(max_tokens=9000), to={"max_output": 4096})["max_tokens"] == 4096


@pytest.mark.parametrize("asked, effort, cap, limit, budget", [
    (32_000, "high", 128_000, 128_000, 96_000), (None, "low", 64_000, 5_120, 1_024), (500, "medium", None, 11_264, 10_240),
    (64_000, "high", 64_000, 64_000, 62_976), (None, "high", 64_000, 64_000, 59_904),
])
def test_effort_becomes_a_budget_that_fits(asked, effort, cap, limit, budget):
    out = body(user("x"), sampling=Sampling(max_tokens=asked, temperature=0.2), thought=Thought(effort), to={"max_output": cap})
    assert (out["max_tokens"], out["thinking"]) == (limit, {"type": "enabled", "budget_tokens": budget})
    assert "temperature" not in out


def test_a_model_too_small_for_a_budget_does_not_think():
    assert "thinking" not in body(user("x"), thought=Thought("high"), to={"max_output": 2000})


def test_newer_models_think_adaptively():
    out = body(user("x"), thought=Thought("xhigh"), to={"model": "claude-opus-4-7"})
    assert (out["thinking"], out["output_config"]) == ({"type": "adaptive"}, {"effort": "max"})


@pytest.mark.parametrize("more", [
    {"tools": [F], "tool_choice": ToolChoice("required")}, {"to": {"model": "claude-3-5-sonnet-20241022"}},
])
def test_where_thinking_is_not_allowed_it_is_not_asked_for(more):
    assert "thinking" not in body(user("x"), thought=Thought("high"), **more)


def test_a_tool_loop_without_signed_thinking_goes_on_without_thinking():
    loop = [user("q"), Message("assistant", [Call("a", "f", "{}")]), Message("tool", [Result("a", [Text("r")])])]
    assert "thinking" not in body(*loop, thought=Thought("high"))
    loop[1].parts.insert(0, Thinking("t", "sig", owner="anthropic"))
    assert "thinking" in body(*loop, thought=Thought("high"))


def test_thinking_can_be_switched_off():
    assert body(user("x"), thought=Thought("none"))["thinking"] == {"type": "disabled"}


def test_a_schema_is_an_instruction_or_the_apis_own_feature():
    wanted = Format("json_schema", {"type": "object", "title": "T"})
    assert '"title":"T"' in body(user("x"), format=wanted)["system"]
    out = body(user("x"), format=wanted, to={"flags": frozenset({"structured_outputs"})})
    assert out["output_config"] == {"format": {"type": "json_schema", "schema": wanted.schema}} and "system" not in out
    assert "JSON object" in body(user("x"), format=Format("json_object"))["system"]


def test_who_asks_and_what_the_target_refuses():
    out = body(user("x"), user="u", sampling=Sampling(temperature=0.5), to={"drop_params": frozenset({"temperature"})})
    assert out["metadata"] == {"user_id": "u"} and "temperature" not in out
