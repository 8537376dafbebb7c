"""Any cut of the text finds the same marker; hostile text is refused, quickly and without an exception."""
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.stream.dialects import MARKERS, failed_generation, held, parse, scan, whole_json
from gateway.stream.json_text import strict

TOOLS: dict[str, dict[str, Any] | None] = {"f": {"type": "object", "properties": {"k": {"type": "array"}}}, "g": None}
PIECES = st.sampled_from([*MARKERS, "f", "g", ":0", ">", '"f">', "=", "{}", '{"k":"[1]"}', '{"name":"f"}', '{"name":"g","arguments":{"a":1}}',
                          "[", "]", "{", "}", '"', "\\", " ", "\n", "prose ", "</tool_call>", "</function>", "<parameter=k>", "</parameter>",
                          "<arg_key>k</arg_key>", "<arg_value>1</arg_value>", "</invoke>", '<parameter name="k">', "[ARGS]", ";", "```json\n",
                          "```", "<|tool_call_argument_begin|>", "<|tool_call_end|>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<", "<|", "[TOOL"])
TEXTS = st.lists(PIECES, max_size=12).map("".join)


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_what_is_read_is_declared_and_sound(text: str) -> None:
    for parsed in (parse(text, TOOLS), whole_json(text, TOOLS), failed_generation({"error": {"failed_generation": text}}, TOOLS)):
        if parsed is None:
            continue
        assert parsed.calls and scan(parsed.rest) == -1 and parsed.text == parsed.rest.strip()
        for call in parsed.calls:
            assert call.name in TOOLS and isinstance(strict(call.arguments), dict)
        words = [word for word in text.split() if word == "prose"]
        kept = parsed.text.split().count("prose") + sum(call.arguments.count("prose") for call in parsed.calls)
        assert kept <= len(words)


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.lists(st.integers(0, 200), max_size=6))
def test_streaming_finds_the_marker_where_the_whole_text_has_it(text: str, places: list[int]) -> None:
    """A stream that lets go of everything but what ``held`` counts loses no marker and finds none that is not there."""
    cuts = sorted({0, len(text), *(place for place in places if place < len(text))})
    gone, kept, found = 0, "", -1
    for start, end in zip(cuts, cuts[1:], strict=False):
        kept += text[start:end]
        found = scan(kept)
        if found >= 0:
            break
        leaves = len(kept) - held(kept)
        gone, kept = gone + leaves, kept[leaves:]
    assert (gone + found if found >= 0 else -1) == scan(text)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["one ", "two.\n", "x < 1 ", "[a] "]), max_size=3).map("".join), st.integers(1, 3))
def test_prose_survives_whole(prose: str, n: int) -> None:
    parsed = parse(prose.join(['<tool_call>{"name":"f"}</tool_call>'] * n) + prose, TOOLS)
    assert parsed is not None and len(parsed.calls) == n and parsed.rest == prose * n
