"""What was tried before is told in headers that every HTTP stack takes."""
import re
import urllib.parse

import pytest

from gateway.core.call import Attempt
from gateway.routing.trail import encode, route_headers, sentence
from tests.unit.routing.scene import error, hop


def answered(label="b/m"):
    return Attempt(label=label, provider="b", model="m", key=2, started=1.0, ended=2.0, committed=True)


def test_a_first_try_that_answers_has_no_trail():
    assert route_headers("a/m", [answered()], True, 0.0) == {"X-Routed-Via": "a/m"}
    assert route_headers("", [], True, 0.0) == {}


def test_failed_hops_are_counted_and_named():
    hops = [hop("groq/m1", 1, "rate_limited"), hop("google/m2", 2, "daily_quota_exhausted"), answered()]
    assert route_headers("b/m", hops, False, 0.0) == {
        "X-Routed-Via": "b/m", "X-Fallback-Attempts": "2",
        "X-Fallback-Trail": "groq/m1 key1=rate_limited; google/m2 key2=daily_quota_exhausted"}


def test_a_hop_that_broke_after_the_commit_is_no_fallback():
    broken = hop("a/m", 1, "truncated", committed=True)
    assert route_headers("a/m", [broken], False, 0.0) == {"X-Routed-Via": "a/m"}


def test_the_detail_has_times_and_messages_and_stays_parseable():
    hops = [hop("a/m", 1, error("timeout", message="no; answer\nat all"), started=10.25, ended=11.0), answered()]
    assert route_headers("b/m", hops, True, 10.0)["X-Fallback-Detail"] == "a/m key1=timeout t=250+750ms msg=no, answer%0Aat all"


def test_the_detail_tells_no_secret_that_a_provider_repeated_nor_half_of_one():
    said = error("server_error", message=f"{'x' * 100} your key is Caller;Key-1q7w")
    value = route_headers("b/m", [hop("a/m", 1, said), answered()], True, 10.0, ("Caller;Key-1q7w", "x"))["X-Fallback-Detail"]
    assert value.endswith("your key is [redact") and "Caller" not in value
    near = error("server_error", message="your key is Caller;Key-1q7w")
    value = route_headers("b/m", [hop("a/m", 1, near), answered()], True, 10.0, ("Caller;Key-1q7w",))["X-Fallback-Detail"]
    assert value.endswith("msg=your key is [redacted]")


@pytest.mark.parametrize("name", ["m", "模型-" * 200, "x" * 4000, "é%\r\nSet-Cookie: a"])
def test_headers_are_bounded_and_clean_whatever_a_model_is_called(name):
    hops = [hop(f"p/{name}", 1, error("timeout", message=name * 50)) for _ in range(20)]
    headers = route_headers(f"p/{name}", hops, True, 0.0)
    assert len(headers["X-Routed-Via"]) <= 256
    assert len(headers["X-Fallback-Trail"]) <= 1024
    assert len(headers["X-Fallback-Detail"]) <= 2048
    assert headers["X-Fallback-Attempts"] == "20"
    for value in headers.values():
        assert re.fullmatch(r"[ -~]*", value)
        assert not re.search(r"%(?![0-9A-F]{2})", value)


def test_at_most_ten_hops_are_named():
    trail = route_headers("", [hop(f"p{n}/m", 1, "timeout") for n in range(13)], False, 0.0)["X-Fallback-Trail"]
    assert trail.endswith("p9/m key1=timeout; +3 more")


@pytest.mark.parametrize(("text", "limit", "expected"), [
    ("a/m", 256, "a/m"), ("100%", 256, "100%25"), ("é", 256, "%C3%A9"), ("é", 5, ""), ("aé", 6, "a"), ("abc", 2, "ab"), ("\n", 9, "%0A"),
])
def test_encoding_is_cut_between_characters(text, limit, expected):
    assert encode(text, limit) == expected


def test_encoding_can_be_read_back():
    assert urllib.parse.unquote(encode("Größe 模型 50% ~")) == "Größe 模型 50% ~"


def test_a_sentence_for_messages():
    assert sentence([hop("a/m", 1, "timeout"), hop("b/m", 2, "auth")]) == "a/m key1: timeout; b/m key2: auth"
