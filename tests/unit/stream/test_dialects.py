"""Calls written as text: every family's grammar, prose kept, nothing half, nothing invented."""
import json
from typing import Any

import pytest

from gateway.stream import dialects
from gateway.stream.dialects import DIALECTS, MARKERS, failed_generation, held, parse, scan, whole_json

TOOLS: dict[str, dict[str, Any] | None] = {
    "weather": {"type": "object", "properties": {
        "city": {"type": "string"}, "days": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}},
        "exact": {"type": "boolean"}, "where": {"type": ["object", "null"]}, "unit": {"enum": ["1", "2"]}}},
    "read-file": None,
    "now": {"type": "object"},
}
A = "antml:"
PARIS = {"city": "Paris"}

ONE_CALL = {
    "kimi section": '<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{"city":"Paris"}'
                    "<|tool_call_end|><|tool_calls_section_end|>",
    "kimi spaced": '<|tool_calls_section_begin|>\n<|tool_call_begin|>\nfunctions.weather:0 <|tool_call_argument_begin|>\n'
                   '{"city":"Paris"}\n<|tool_call_end|>\n<|tool_calls_section_end|>',
    "kimi bare": '<|tool_call_begin|>functions.weather:3<|tool_call_argument_begin|>{"city":"Paris"}<|tool_call_end|>',
    "kimi without its last token": '<|tool_call_begin|>weather<|tool_call_argument_begin|>{"city":"Paris"}',
    "hermes": '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"}}\n</tool_call>',
    "hermes parameters": '<tool_call>{"name": "weather", "parameters": {"city": "Paris"}}</tool_call>',
    "hermes double-encoded": '<tool_call>{"name": "weather", "arguments": "{\\"city\\": \\"Paris\\"}"}</tool_call>',
    "hermes with python's quotes": "<tool_call>{'name': 'weather', 'arguments': {'city': 'Paris'}}</tool_call>",
    "hermes in openai's nesting": '<tool_call>{"type":"function","function":{"name":"weather","arguments":"{\\"city\\":\\"Paris\\"}"}}'
                                  "</tool_call>",
    "name before json": '<tool_call>weather\n{"city": "Paris"}\n</tool_call>',
    "minimax m1": '<tool_calls>\n{"name": "weather", "arguments": {"city": "Paris"}}\n</tool_calls>',
    "glm": "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>",
    "llama": '<function=weather{"city":"Paris"}</function>',
    "llama closed": '<function=weather>{"city":"Paris"}</function>',
    "llama assigned": '<function=weather={"city":"Paris"}</function>',
    "llama called": '<function=weather({"city":"Paris"})</function>',
    "qwen3-coder": "<function=weather>\n<parameter=city>\nParis\n</parameter>\n</function>",
    "qwen3-coder wrapped": "<tool_call>\n<function=weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>",
    "qwen3-coder half wrapped": "<function=weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>",
    "mistral": '[TOOL_CALLS][{"name": "weather", "arguments": {"city": "Paris"}, "id": "abcdefghi"}]',
    "mistral spaced": '[TOOL_CALLS] [{"name": "weather", "arguments": {"city": "Paris"}}]</s>',
    "mistral v11": '[TOOL_CALLS]weather[ARGS]{"city": "Paris"}',
    "mistral v11 with id": '[TOOL_CALLS]weather[CALL_ID]abcdefghi[ARGS]{"city": "Paris"}',
    "mistral v11 plain": '[TOOL_CALLS]weather{"city": "Paris"}',
    "python tag": '<|python_tag|>{"name": "weather", "parameters": {"city": "Paris"}}<|eom_id|>',
    "deepseek v3": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n"
                   '{"city":"Paris"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>',
    "deepseek v3.1": '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{"city":"Paris"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "minimax m2": '<minimax:tool_call>\n<invoke name="weather">\n<parameter name="city">Paris</parameter>\n</invoke>\n'
                  "</minimax:tool_call>",
    "invoke": '<invoke name="weather"><parameter name="city">Paris</parameter></invoke>',
    "function calls": '<function_calls>\n<invoke name="weather">\n<parameter name="city">Paris</parameter>\n</invoke>\n'
                      "</function_calls>",
    "prefixed function calls": f'<{A}function_calls><{A}invoke name="weather"><{A}parameter name="city">Paris</{A}parameter>'
                               f"</{A}invoke></{A}function_calls>",
    "invoke in a tool call": '<tool_call>\n<invoke name="weather">\n<parameter name="city">Paris</parameter>\n</invoke>\n</tool_call>',
    "dsml": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="weather">\n<｜DSML｜parameter name="city" string="true">Paris'
            "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
}


def calls(text: str, tools: dict[str, dict[str, Any] | None] = TOOLS) -> list[tuple[str, Any]] | None:
    parsed = parse(text, tools)
    return None if parsed is None else [(call.name, json.loads(call.arguments)) for call in parsed.calls]


@pytest.mark.parametrize("text", ONE_CALL.values(), ids=ONE_CALL.keys())
def test_a_call_is_read_in_every_form(text: str) -> None:
    parsed = parse(text, TOOLS)
    assert parsed is not None and parsed.text == ""
    assert calls(text) == [("weather", PARIS)]


@pytest.mark.parametrize("text", ONE_CALL.values(), ids=ONE_CALL.keys())
def test_prose_around_a_call_is_kept(text: str) -> None:
    if "</s>" in text or "<｜end" in text or "<|eom" in text:
        text += "\n"
    parsed = parse(f"Let me look, 1 < 2.\n{text}\nThat is [all].", TOOLS)
    assert parsed is not None and len(parsed.calls) == 1
    assert parsed.text.split() == "Let me look, 1 < 2. That is [all].".split()
    assert parsed.rest.startswith("Let me look, 1 < 2.\n")


@pytest.mark.parametrize("text", ONE_CALL.values(), ids=ONE_CALL.keys())
def test_an_undeclared_name_makes_the_whole_turn_dead(text: str) -> None:
    assert parse(text.replace("weather", "other"), TOOLS) is None
    assert parse(text, {}) is None


@pytest.mark.parametrize("text", ONE_CALL.values(), ids=ONE_CALL.keys())
def test_a_call_that_is_cut_is_no_call_or_the_same_call(text: str) -> None:
    for end in range(len(text)):
        assert calls(text[:end]) in (None, [("weather", PARIS)])


@pytest.mark.parametrize("text", ONE_CALL.values(), ids=ONE_CALL.keys())
def test_two_calls_in_one_turn_are_two(text: str) -> None:
    again = text.replace("Paris", "Graz")
    if "</s>" not in text:
        assert calls(f"a {text} b {again}") == [("weather", PARIS), ("weather", {"city": "Graz"})]


@pytest.mark.parametrize(("text", "found"), [
    ('<|tool_calls_section_begin|><|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{}<|tool_call_end|>'
     '<|tool_call_begin|>functions.read-file:1<|tool_call_argument_begin|>{"p":1}<|tool_call_end|><|tool_calls_section_end|>',
     [("now", {}), ("read-file", {"p": 1})]),
    ('[TOOL_CALLS][{"name":"now","arguments":{}},{"name":"read-file","arguments":{"p":1}}]', [("now", {}), ("read-file", {"p": 1})]),
    ('[TOOL_CALLS]now[ARGS]{}[TOOL_CALLS]read-file[ARGS]{"p":1}', [("now", {}), ("read-file", {"p": 1})]),
    ('<|python_tag|>{"name":"now","parameters":{}}; {"name":"read-file","parameters":{"p":1}}',
     [("now", {}), ("read-file", {"p": 1})]),
    ('<tool_call>{"name":"now"}\n{"name":"read-file","arguments":{"p":1}}</tool_call>', [("now", {}), ("read-file", {"p": 1})]),
    ("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>read-file<｜tool▁sep｜>"
     '{"p":1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>', [("now", {}), ("read-file", {"p": 1})]),
    ('<minimax:tool_call><invoke name="now"></invoke><invoke name="read-file"><parameter name="p">1</parameter></invoke>'
     "</minimax:tool_call>", [("now", {}), ("read-file", {"p": 1})]),
])
def test_parallel_calls_in_one_block(text: str, found: list[Any]) -> None:
    assert calls(text) == found


@pytest.mark.parametrize("text", [
    '<tool_call>{"name":"now"}</tool_call>', "<tool_call>now\n</tool_call>", "<function=now></function>", '<invoke name="now"></invoke>',
    "<|tool_call_begin|>functions.now:0<|tool_call_argument_begin|><|tool_call_end|>", '<tool_call>{"name":"now","arguments":""}</tool_call>',
])
def test_a_call_without_arguments_has_an_empty_object(text: str) -> None:
    assert calls(text) == [("now", {})]


@pytest.mark.parametrize(("field", "value", "read"), [
    ("days", "3", 3), ("days", "three", "three"), ("days", "03", "03"), ("city", "3", "3"), ("city", "null", "null"),
    ("tags", '["a", "b"]', ["a", "b"]), ("tags", "['a', 'b']", ["a", "b"]), ("tags", "a, b", "a, b"), ("tags", '["a"', '["a"'),
    ("exact", "True", True), ("exact", "yes", "yes"), ("where", "null", None), ("where", '{"x": 1.0}', {"x": 1.0}),
    ("unit", "1", "1"), ("unknown", "17", 17), ("unknown", "free text", "free text"), ("unknown", "[x](y)", "[x](y)"),
    ("city", "a\n  b\n", "a\n  b\n"), ("city", 'x = "<a href=\\"#\\">"', 'x = "<a href=\\"#\\">"'), ("days", "12345678901234567890123", 12345678901234567890123),
])
@pytest.mark.parametrize("form", [
    "<function=weather>\n<parameter={}>\n{}\n</parameter>\n</function>",
    "<tool_call>weather\n<arg_key>{}</arg_key>\n<arg_value>{}</arg_value>\n</tool_call>",
    '<invoke name="weather">\n<parameter name="{}">{}</parameter>\n</invoke>',
])
def test_values_between_tags_get_the_type_that_the_schema_declares(form: str, field: str, value: str, read: Any) -> None:
    if value.endswith("\n") and "\n{}\n" not in form:
        read = read.removesuffix("\n")
    assert calls(form.format(field, value)) == [("weather", {field: read})]


def test_a_value_may_hold_the_tags_it_stands_between() -> None:
    text = "<function=read-file><parameter=a>write </parameter> here</parameter><parameter=b>x</parameter></function>"
    assert calls(text) == [("read-file", {"a": "write </parameter> here", "b": "x"})]


def test_a_value_that_runs_into_the_next_block_is_dead() -> None:
    text = "<function=now><parameter=a>1</parameter> oops </function> <function=now><parameter=a>2</parameter></function>"
    assert parse(text, TOOLS) is None


def test_dsml_says_itself_what_is_a_string() -> None:
    text = ('<｜DSML｜invoke name="read-file"><｜DSML｜parameter name="a" string="true">5</｜DSML｜parameter>'
            '<｜DSML｜parameter name="b" string="false">5</｜DSML｜parameter></｜DSML｜invoke>')
    assert calls(text) == [("read-file", {"a": "5", "b": 5})]


@pytest.mark.parametrize("text", [
    "<|tool_calls_section_begin|>", "<|tool_calls_section_begin|><|tool_calls_section_end|>",
    '<|tool_call_begin|>chatcmpl-tool-ab12cd<|tool_call_argument_begin|>{"city":"Paris"}<|tool_call_end|>',
    '<|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{} and <|tool_call_end|>',
    "<function=now>[1]</function>", "<function=now>{}", '<tool_call>{"name":"now"}', "<tool_call></tool_call>", "<tool_call>[]</tool_call>",
    '<tool_call>{"name":"now"}</tool_call> <tool_call>{"name":"nope"}</tool_call>', '<tool_call>{"name":"now"}</tool_call><tool_call>',
    '<tool_call>{"name":"now"}</tool_call><function=now>{}</function>', "<function_calls></function_calls>",
    '<function_calls><invoke name="now"></invoke>', "[TOOL_CALLS]", "[TOOL_CALLS][]", '[TOOL_CALLS][{"name":"now"}', '[TOOL_CALLS][1]',
    '<|python_tag|>print("hi")', '<|python_tag|>brave_search.call(query="x")', '<tool_call>{"name":5}</tool_call>',
    '<tool_call>{"name":"now","arguments":[1]}</tool_call>', '<tool_call>{"name":"now","arguments":"text"}</tool_call>',
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}", "The tag <tool_call> begins a call.",
    "".join(["<tool_call>", '{"name":"now"}' * 200, "</tool_call>"]),
])
def test_what_is_not_wholly_a_call_is_dead(text: str) -> None:
    assert parse(text, TOOLS) is None


def test_prose_between_blocks_is_kept_in_order() -> None:
    call = '<tool_call>{"name":"now"}</tool_call>'
    parsed = parse(f"one {call} two {call}\nthree", TOOLS)
    assert parsed is not None and parsed.text == "one  two \nthree" and len(parsed.calls) == 2


def test_arguments_are_repaired_by_the_schema() -> None:
    assert calls('<tool_call>{"name":"weather","arguments":{"tags":"[\\"a\\"]"}}</tool_call>') == [("weather", {"tags": ["a"]})]


def test_numbers_of_any_size_survive() -> None:
    assert calls('<tool_call>{"name":"now","arguments":{"n":123456789012345678901234567890}}</tool_call>') == [
        ("now", {"n": 123456789012345678901234567890})]


@pytest.mark.parametrize("marker", MARKERS)
def test_a_marker_is_found_wherever_it_stands_and_held_while_it_grows(marker: str) -> None:
    assert scan(f"a < b [1] {marker}") == 10
    assert scan(f"{marker} {marker}", 1) == len(marker) + 1
    for length in range(1, len(marker)):
        assert scan(f"some text {marker[:length]}") == -1
        assert held(f"some [text] < {marker[:length]}") == length
    assert held(f"{marker[:-1]}\x00") == 0


@pytest.mark.parametrize("text", ["", "plain", "a < b", "x[0]", "<div>", "<functional", "[TOOLS]", "<|im_end|>", "<tool_Call>"])
def test_ordinary_text_is_neither_found_nor_held(text: str) -> None:
    assert scan(text) == -1 and held(text) == 0


def test_the_table_equals_the_files() -> None:
    from pathlib import Path
    files = {path.stem for path in Path(dialects.__file__).parent.glob("*.py")} - {"__init__", "reader", "values", "bare"}
    assert files == set(DIALECTS)
    assert all("<" not in marker[1:] and "[" not in marker[1:] for marker in MARKERS)   # what ``held`` relies on


@pytest.mark.parametrize("text", [
    '{"name":"weather","arguments":{"city":"Paris"}}', '```json\n{"name":"weather","parameters":{"city":"Paris"}}\n```',
    '\n```\n{"type":"function","name":"weather","arguments":"{\\"city\\":\\"Paris\\"}"}```\n',
])
def test_a_whole_answer_may_be_one_call(text: str) -> None:
    parsed = whole_json(text, TOOLS)
    assert parsed is not None and parsed.text == "" and json.loads(parsed.calls[0].arguments) == PARIS


@pytest.mark.parametrize("text", [
    '{"name":"Bob","arguments":{}}', '{"name":"weather","city":"Paris"}', '{"name":"weather","arguments":{}} done', "{}", "[]", "",
    '[{"name":"weather","arguments":{}}]', '{"name":"weather","arguments":{"city":', "```python\n{}\n```", '{"name":["weather"]}',
    '{"name":"weather","arguments":5}',
])
def test_any_other_json_is_an_answer(text: str) -> None:
    assert whole_json(text, TOOLS) is None


@pytest.mark.parametrize("text", [
    *ONE_CALL.values(), 'weather{"city": "Paris"}</function>', 'weather>{"city": "Paris"}', '{"name":"weather","arguments":{"city":"Paris"}}',
    '[{"name":"weather","parameters":{"city":"Paris"}}]', '```\n{"tool_calls":[{"name":"weather","parameters":{"city":"Paris"}}]}\n```',
    '{"tool_calls":[{"id":"x","type":"function","function":{"name":"weather","arguments":"{\\"city\\":\\"Paris\\"}"}}]}',
])
def test_what_the_provider_refused_to_pass_on_is_read_in_any_form(text: str) -> None:
    body = {"error": {"code": "tool_use_failed", "message": "Failed to call a function.", "failed_generation": text}}
    parsed = failed_generation(body, TOOLS)
    assert parsed is not None and [(call.name, json.loads(call.arguments)) for call in parsed.calls] == [("weather", PARIS)]
    assert failed_generation(body, {}) is None


@pytest.mark.parametrize("body", [
    {}, {"error": None}, {"error": "x"}, {"error": {}}, {"error": {"failed_generation": ""}}, {"error": {"failed_generation": "maybe"}},
    {"error": {"failed_generation": None}}, {"error": {"failed_generation": 'other{"city":1}'}}, {"error": {"failed_generation": "[]"}},
    {"error": {"failed_generation": 'weather{"city":"Paris"} and more'}}, {"error": {"failed_generation": 'weather{"city":"Pa'}},
])
def test_an_error_without_a_readable_call_stays_an_error(body: dict[str, Any]) -> None:
    assert failed_generation(body, TOOLS) is None
