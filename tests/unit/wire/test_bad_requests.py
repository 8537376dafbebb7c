"""Malformed requests are refused with our own error, which names the field; nothing else comes out of the parser."""
import json

import pytest

from gateway.core.errors import GatewayError
from tests.unit.wire.frames import CHAT

HI = {"role": "user", "content": "hi"}
CALL = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}


def chat(**fields):
    return {"model": "m", "messages": [HI], **fields}


def said(*messages):
    return {"model": "m", "messages": list(messages)}


# what is wrong -> (operation, body, the field that is named)
TABLE = {
    # not a JSON object at all
    "an empty body": ("chat", b"", None),
    "blanks only": ("chat", b" \r\n\t ", None),
    "cut JSON": ("chat", b'{"model":"m","messages":[{"role"', None),
    "words": ("chat", b"hello", None),
    "a form": ("chat", b"model=m&messages=hi", None),
    "two documents": ("chat", b'{"messages":[]}{"messages":[]}', None),
    "single quotes": ("chat", b"{'model':'m'}", None),
    "NaN": ("chat", b'{"messages":[{"role":"user","content":"x"}],"temperature":NaN}', None),
    "infinity by size": ("chat", b'{"messages":[{"role":"user","content":"x"}],"temperature":1e999}', "temperature"),
    "invalid UTF-8 in a text": ("chat", b'{"messages":[{"role":"user","content":"\xff\xfe"}]}', None),
    "UTF-16": ("chat", '{"messages":[]}'.encode("utf-16"), None),
    "nested too deeply": ("chat", b'{"messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "messages.0"),
    "unknown field nested too deeply": ("chat", b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b',"messages":[]}', None),
    "a schema nested too deeply": ("chat", b'{"messages":[{"role":"user","content":"x"}],"tools":[{"function":{"name":"f",'
                                   b'"parameters":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}}]}", None),
    "an array": ("chat", b"[]", None),
    "a string": ("chat", b'"hi"', None),
    "a number": ("chat", b"5", None),
    "null": ("chat", b"null", None),
    # messages
    "no messages": ("chat", {"model": "m"}, "messages"),
    "messages null": ("chat", {"messages": None}, "messages"),
    "messages empty": ("chat", {"messages": []}, "messages"),
    "messages a string": ("chat", {"messages": "hi"}, "messages"),
    "messages an object": ("chat", {"messages": {"role": "user"}}, "messages"),
    "too many messages": ("chat", {"messages": [HI] * 20_001}, "messages"),
    "a message that is a string": ("chat", said(HI, "hi"), "messages.1"),
    "a message that is null": ("chat", said(None), "messages.0"),
    "no role": ("chat", said({"content": "hi"}), "messages.0.role"),
    "an unknown role": ("chat", said(HI, {"role": "robot", "content": "x"}), "messages.1.role"),
    "a role that is a number": ("chat", said({"role": 1, "content": "x"}), "messages.0.role"),
    "a role in capitals": ("chat", said({"role": "USER", "content": "x"}), "messages.0.role"),
    "a user without content": ("chat", said({"role": "user"}), "messages.0.content"),
    "a user with null": ("chat", said(HI, {"role": "user", "content": None}), "messages.1.content"),
    "a system prompt without content": ("chat", said({"role": "system"}), "messages.0.content"),
    "content that is a number": ("chat", said({"role": "user", "content": 5}), "messages.0.content"),
    "content that is an object": ("chat", said({"role": "user", "content": {"text": "x"}}), "messages.0.content"),
    "a part that is a number": ("chat", said({"role": "user", "content": [1]}), "messages.0.content.0"),
    "a part without anything": ("chat", said({"role": "user", "content": [{}]}), "messages.0.content.0.type"),
    "a text part without text": ("chat", said({"role": "user", "content": [{"type": "text"}]}), "messages.0.content.0.text"),
    "a text part with a number": ("chat", said({"role": "user", "content": [{"type": "text", "text": 1}]}),
                                  "messages.0.content.0.text"),
    "an image without address": ("chat", said({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}),
                                 "messages.0.content.0.image_url.url"),
    "an image that is nothing": ("chat", said({"role": "user", "content": [{"type": "image_url"}]}),
                                 "messages.0.content.0.image_url.url"),
    "an image that is a list": ("chat", said({"role": "user", "content": [{"type": "image_url", "image_url": []}]}),
                                "messages.0.content.0.image_url"),
    "audio without data": ("chat", said({"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}),
                           "messages.0.content.0.input_audio.data"),
    "a file part without file": ("chat", said({"role": "user", "content": [{"type": "file"}]}), "messages.0.content.0.file"),
    "a function result without name": ("chat", said(CALL, {"role": "function", "content": "x"}), "messages.1.name"),
    "a result id that is a number": ("chat", said(CALL, {"role": "tool", "tool_call_id": 5, "content": "x"}),
                                     "messages.1.tool_call_id"),
    "calls that are an object": ("chat", said({"role": "assistant", "tool_calls": {}}), "messages.0.tool_calls"),
    "a call without function": ("chat", said({"role": "assistant", "tool_calls": [{"id": "c"}]}),
                                "messages.0.tool_calls.0.function"),
    "a call without name": ("chat", said({"role": "assistant", "tool_calls": [{"id": "c", "function": {"arguments": "{}"}}]}),
                            "messages.0.tool_calls.0.function.name"),
    "a call with a list of arguments": (
        "chat", said({"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": []}}]}),
        "messages.0.tool_calls.0.function.arguments"),
    "a custom call without name": ("chat", said({"role": "assistant", "tool_calls": [{"id": "c", "custom": {}}]}),
                                   "messages.0.tool_calls.0.custom.name"),
    # top level
    "a model that is a number": ("chat", chat(model=5), "model"),
    "a model as long as a book": ("chat", chat(model="m" * 513), "model"),
    "stream as a word": ("chat", chat(stream="true"), "stream"),
    "stream as a number": ("chat", chat(stream=1), "stream"),
    "stream options as a list": ("chat", chat(stream=True, stream_options=[]), "stream_options"),
    "include_usage as a word": ("chat", chat(stream=True, stream_options={"include_usage": "yes"}),
                                "stream_options.include_usage"),
    "temperature as a word": ("chat", chat(temperature="hot"), "temperature"),
    "temperature too high": ("chat", chat(temperature=2.5), "temperature"),
    "temperature below zero": ("chat", chat(temperature=-0.1), "temperature"),
    "top_p above one": ("chat", chat(top_p=1.1), "top_p"),
    "presence_penalty": ("chat", chat(presence_penalty=-3), "presence_penalty"),
    "frequency_penalty": ("chat", chat(frequency_penalty=3), "frequency_penalty"),
    "n of zero": ("chat", chat(n=0), "n"),
    "n as a fraction": ("chat", chat(n=1.5), "n"),
    "n of a thousand": ("chat", chat(n=1000), "n"),
    "max_tokens as a word": ("chat", chat(max_tokens="many"), "max_tokens"),
    "max_completion_tokens as a list": ("chat", chat(max_completion_tokens=[1]), "max_completion_tokens"),
    "top_logprobs": ("chat", chat(top_logprobs=21), "top_logprobs"),
    "logprobs as a number": ("chat", chat(logprobs=2), "logprobs"),
    "stop as a number": ("chat", chat(stop=5), "stop"),
    "stop with a number in it": ("chat", chat(stop=["a", 5]), "stop.1"),
    "too many stops": ("chat", chat(stop=["a"] * 65), "stop"),
    "seed as a word": ("chat", chat(seed="x"), "seed"),
    "user as an object": ("chat", chat(user={}), "user"),
    "metadata as a list": ("chat", chat(metadata=[]), "metadata"),
    "logit_bias as a list": ("chat", chat(logit_bias=[1]), "logit_bias"),
    "reasoning_effort as a number": ("chat", chat(reasoning_effort=3), "reasoning_effort"),
    # tools and format
    "tools as an object": ("chat", chat(tools={"f": {}}), "tools"),
    "a tool that is a string": ("chat", chat(tools=["f"]), "tools.0"),
    "a tool without function": ("chat", chat(tools=[{"type": "function"}]), "tools.0.function"),
    "a tool without name": ("chat", chat(tools=[{"type": "function", "function": {}}]), "tools.0.function.name"),
    "a tool with an empty name": ("chat", chat(tools=[{"function": {"name": ""}}]), "tools.0.function.name"),
    "a second tool whose schema is a list": (
        "chat", chat(tools=[{"function": {"name": "a"}}, {"function": {"name": "b", "parameters": []}}]),
        "tools.1.function.parameters"),
    "a custom tool without name": ("chat", chat(tools=[{"type": "custom", "custom": {}}]), "tools.0.custom.name"),
    "too many tools": ("chat", chat(tools=[{"function": {"name": "a"}}] * 2001), "tools"),
    "a function with an empty name": ("chat", chat(functions=[{"name": ""}]), "functions.0.name"),
    "a tool choice nobody knows": ("chat", chat(tool_choice="maybe"), "tool_choice"),
    "a tool choice that is a number": ("chat", chat(tool_choice=5), "tool_choice"),
    "a tool choice without name": ("chat", chat(tool_choice={"type": "function"}), "tool_choice.function.name"),
    "a function choice without name": ("chat", chat(function_call={}), "function_call.name"),
    "parallel_tool_calls as a word": ("chat", chat(parallel_tool_calls="no"), "parallel_tool_calls"),
    "a format that is a word": ("chat", chat(response_format="json"), "response_format"),
    "a format without type": ("chat", chat(response_format={}), "response_format.type"),
    "a schema format without schema": ("chat", chat(response_format={"type": "json_schema"}), "response_format.json_schema"),
    "a schema that is a list": ("chat", chat(response_format={"type": "json_schema", "json_schema": {"schema": []}}),
                                "response_format.json_schema.schema"),
    # legacy completions
    "no prompt": ("completions", {"model": "m"}, "prompt"),
    "prompt null": ("completions", {"prompt": None}, "prompt"),
    "prompt a number": ("completions", {"prompt": 5}, "prompt"),
    "prompt empty": ("completions", {"prompt": []}, "prompt"),
    "prompts of two kinds": ("completions", {"prompt": ["a", 5]}, "prompt.1"),
    "prompts that are objects": ("completions", {"prompt": [{}]}, "prompt.0"),
    "tokens below zero": ("completions", {"prompt": [1, -1]}, "prompt.1"),
    "token lists with text": ("completions", {"prompt": [[1], ["a"]]}, "prompt.1"),
    "too many prompts": ("completions", {"prompt": ["a"] * 2049}, "prompt"),
    "suffix as a number": ("completions", {"prompt": "a", "suffix": 1}, "suffix"),
    "echo as a word": ("completions", {"prompt": "a", "echo": "yes"}, "echo"),
    "logprobs below zero": ("completions", {"prompt": "a", "logprobs": -1}, "logprobs"),
    "best_of below n": ("completions", {"prompt": "a", "n": 3, "best_of": 2}, "best_of"),
    "a completion that is an array": ("completions", b"[1]", None),
}


def test_the_table_is_long_enough():
    assert len(TABLE) >= 60


@pytest.mark.parametrize("what", TABLE)
def test_it_is_refused_and_the_field_is_named(what):
    operation, body, param = TABLE[what]
    with pytest.raises(GatewayError) as refused:
        CHAT.parse_request(body if isinstance(body, bytes) else json.dumps(body).encode(), operation)
    error = refused.value
    assert (error.status, error.param) == (400, param)
    answer = json.loads(CHAT.render_error(error, operation))["error"]
    assert answer["type"] == "invalid_request_error"
    assert answer["param"] == param
    assert answer["message"]
    if param is not None:
        assert param in answer["message"]


LENIENT = {
    "roles that other formats have not": said({"role": "developer", "content": "x"}, HI),
    "an assistant with null": said(HI, {"role": "assistant", "content": None}, HI),
    "an assistant with an empty list": said(HI, {"role": "assistant", "content": []}, HI),
    "parts without a type": said({"role": "user", "content": [{"text": "a"}, "b"]}),
    "calls null": said(HI, {"role": "assistant", "content": "a", "tool_calls": None}, HI),
    "arguments as an object": said({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
                                   {"role": "tool", "content": None}),
    "a result without any call": said(HI, {"role": "tool", "tool_call_id": "c", "content": "x"}),
    "a result without a call or an id": said(HI, {"role": "tool", "content": "x"}),
    "every option null": chat(temperature=None, tools=None, tool_choice=None, stop=None, n=None, stream=None, max_tokens=None),
    "no limit of tokens": chat(max_tokens=-1),
    "options nobody knows": chat(chat_template_kwargs={"a": 1}, thinking={"type": "enabled"}),
    "no model": {"messages": [HI]},
    "a byte order mark": b'\xef\xbb\xbf{"messages":[{"role":"user","content":"x"}]}',
    "half an emoji": b'{"messages":[{"role":"user","content":"cut \\ud83d"}]}',
    "a repeated key": b'{"model":"a","messages":[],"model":"b","messages":[{"role":"user","content":"x"}]}',
}


@pytest.mark.parametrize("what", LENIENT)
def test_what_clients_do_by_habit_is_taken(what):
    body = LENIENT[what]
    request = CHAT.parse_request(body if isinstance(body, bytes) else json.dumps(body).encode())
    assert request.wire == "openai-chat"
