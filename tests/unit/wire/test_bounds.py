"""What holds more than any conversation does is refused before a parser makes anything of it, and the place is named."""
import json

import pytest

from gateway.wire.bounds import LARGE_BYTES, MAX_ITEMS, MAX_KEYS, MAX_PARTS, MAX_VALUES, crowded

PAD = "x" * LARGE_BYTES
HI = {"role": "user", "content": "hi"}


def body(**fields: object) -> bytes:
    return json.dumps({"model": "m", "pad": PAD, "messages": [HI], **fields}).encode()


@pytest.mark.parametrize(("raw", "path"), [
    (body(messages=[HI] * (MAX_ITEMS + 1)), "messages"),
    (body(messages=[HI, {"role": "user", "content": [{"text": "a"}] * (MAX_PARTS + 1)}]), "messages.1.content"),
    (body(messages=[HI, *[{"role": "user", "content": ["a", "b"]}] * (MAX_PARTS // 2 + 1)]), f"messages.{MAX_PARTS // 2 + 1}.content"),
    (body(contents=[{"parts": [{"text": "a"}] * (MAX_PARTS + 1)}]), "contents.0.parts"),
    (body(tools=[{"type": "function"}] * (MAX_ITEMS + 1)), "tools"),
    (body(x=[1] * (MAX_VALUES + 1)), "x"),
    (body(**{f"k{i}": 1 for i in range(MAX_KEYS)}), ""),
], ids=["messages", "parts of one", "parts of all", "contents", "tools", "numbers", "fields"])
def test_too_much_is_named(raw: bytes, path: str) -> None:
    found = crowded(raw)
    assert found is not None and found[0] == path


@pytest.mark.parametrize("raw", [
    body(messages=[HI] * MAX_ITEMS), body(messages=[{"role": "user", "content": [{"text": "a,[{"}] * 10}] * 1_000),
    body(messages=[{"role": "user", "content": '"],[{' * 200_000}]), body(messages=[{"role": "user", "content": "\\" * 500_000 + '"'}]),
    body(tools=[{"function": {"parameters": {"enum": ["a"] * 100}}}] * 1_000), body(prompt=[7] * 100_000), body(x=","),
    b'{"pad":"' + PAD.encode() + b'","messages":[' + b'{"content":', b'{"pad":"' + PAD.encode(), b"[" * 2_000_000, b"}" * 2_000_000,
    b'"' + b"\\" * 2_000_000, b"not JSON" * 200_000,
], ids=range(13))
def test_what_a_conversation_may_hold_and_what_is_no_json_goes_on_to_the_parser(raw: bytes) -> None:
    assert crowded(raw) is None


def test_small_bodies_are_not_walked() -> None:
    assert crowded(b'{"x":[' + b"1," * 400_000 + b"1]}") is None
