"""The most specific proxy wins, and none is skipped silently."""
import pytest

from gateway.upstream.proxies import choose, exempt, problem

OUT = "https://api.example.com/v1"


@pytest.mark.parametrize(("configured", "env", "expected"), [
    ("", {}, ""),
    ("http://p:1", {"NO_PROXY": "*", "ALL_PROXY": "http://q:1"}, "http://p:1"),
    ("", {"ALL_PROXY": "socks5://s:1", "HTTPS_PROXY": "http://q:1"}, "socks5://s:1"),
    ("", {"HTTPS_PROXY": "http://q:1", "HTTP_PROXY": "http://r:1"}, "http://q:1"),
    ("", {"HTTP_PROXY": "http://r:1"}, ""),
    ("", {"https_proxy": "q:1"}, "http://q:1"),
    ("", {"HTTPS_PROXY": "http://q:1", "NO_PROXY": "other.org, .example.com"}, ""),
    ("", {"HTTPS_PROXY": "http://q:1", "no_proxy": "ample.com"}, "http://q:1"),
])
def test_choice(configured: str, env: dict[str, str], expected: str) -> None:
    assert choose(OUT, configured, env) == expected


def test_this_machine_is_reached_directly_unless_configured_otherwise() -> None:
    env = {"ALL_PROXY": "http://q:1"}
    for url in ("http://127.0.0.1:9/v1", "http://localhost/v1", "http://[::1]/v1"):
        assert choose(url, "", env) == ""
        assert choose(url, "http://p:1", env) == "http://p:1"


@pytest.mark.parametrize(("host", "port", "no_proxy", "expected"), [
    ("a.b.c", None, "b.c", True), ("a.b.c", None, "*.b.c", True), ("ab.c", None, "b.c", False), ("x", None, "*", True),
    ("10.1.2.3", None, "10.0.0.0/8", True), ("11.1.2.3", None, "10.0.0.0/8", False), ("a.c", 80, "a.c:80", True),
    ("a.c", 81, "a.c:80", False), ("A.C", None, "a.c", True), ("a.c", None, "", False), ("a.c", None, ",. ,", False)])
def test_no_proxy(host: str, port: int | None, no_proxy: str, expected: bool) -> None:
    assert exempt(host, port, no_proxy) is expected


def test_a_wrong_proxy_is_named_without_repeating_it() -> None:
    assert problem("http://u:p@host:1") is None
    for wrong in ("ftp://secret:1", "secret:1", "http://", "http://host:secret"):
        text = problem(wrong)
        assert text and "secret" not in text
