"""Estimates are near enough, in any script, and free of surprises."""
import pytest

from gateway.core.request import Request
from gateway.tokens.estimate import estimate, estimate_request, reserve

# (text, tokens as the mean of three public vocabularies)
KNOWN = [
    ("The gateway answers with whole turns, or with an honest status that says why it could not. " * 4, 77),
    ("def add(a: int, b: int) -> int:\n    \"\"\"Sum of two numbers.\"\"\"\n    return a + b\n\n\nprint(add(1, 2))\n", 35),
    ('{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\\"city\\":\\"Paris\\"}"}}', 26),
    ("网关会在用户没有察觉的情况下切换到下一个服务商。今天的天气很好,我们一起去公园散步吧。", 33),
    ("Сегодня очень хорошая погода, поэтому мы решили погулять в парке.", 22),
    ("आज मौसम बहुत अच्छा है, इसलिए हम बगीचे में टहलने गए।", 36),
]


def asked(**facts):
    return Request(**{"wire": "openai-chat", "raw": b"", "body": None, "model": "m", "stream": True, **facts})


@pytest.mark.parametrize(("text", "tokens"), KNOWN)
def test_a_text_is_estimated_within_a_third(text, tokens):
    assert tokens * 0.67 <= estimate(text) <= tokens * 1.4


def test_nothing_is_nothing_and_something_is_something():
    assert estimate("") == 0
    assert estimate(" ") == 1
    assert estimate("a") == 1
    assert estimate("\ud800") >= 1
    assert estimate("  " * 10_000) > 0


def test_a_request_is_estimated_by_its_length_and_its_images():
    assert estimate_request(asked(chars=401)) == 101
    assert estimate_request(asked(chars=401, images=2)) == 2101
    assert estimate_request(asked()) == 0


def test_a_request_in_chinese_counts_its_characters():
    raw = KNOWN[3][0].encode()
    chars = len(KNOWN[3][0])
    assert estimate_request(asked(raw=raw, chars=chars)) > chars / 2
    assert estimate_request(asked(raw=b" " * 10_000, chars=100)) == 25


@pytest.mark.parametrize(("max_tokens", "expected"), [(None, 1000), (16, 16), (1500, 1500), (128_000, 2000)])
def test_a_large_max_tokens_does_not_exclude_small_models(max_tokens, expected):
    assert reserve(max_tokens) == expected
