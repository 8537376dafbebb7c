"""A key uses what it is allowed to; a web page uses nothing."""
import pytest
from multidict import CIMultiDict

from gateway.core.errors import GatewayError
from gateway.policy.access import browser_guard, elsewhere, is_loopback, restrict
from gateway.policy.keys import ClientKey, KeyRing, digest
from gateway.providers.registry import Model
from gateway.routing.resolve import resolve
from tests.unit.routing.scene import catalog, labels, provider

HOUSE = catalog(provider("a", "m", Model("big", aliases=("smart",))), provider("b", "m", "small", order=1))
JSON = {"content-type": "application/json", "host": "127.0.0.1:8788"}


def holder(*patterns):
    return KeyRing([ClientKey(name="k", sha256=digest("k"), models=patterns)]).principals[0]


def allowed(principal, requested):
    meant = resolve(requested, HOUSE)
    return restrict(principal, meant.requested, meant.kind, meant.targets)


@pytest.mark.parametrize(("patterns", "requested", "expected"), [
    (("*",), "auto", ["a/m", "a/big", "b/m", "b/small"]),
    (("m",), "m", ["a/m", "b/m"]),
    (("a/*",), "m", ["a/m"]),
    (("a/*",), "auto", ["a/m", "a/big"]),
    (("m",), "a/m", ["a/m"]),
    (("small",), "auto", ["b/small"]),
    (("auto",), "auto", ["a/m", "a/big", "b/m", "b/small"]),
    (("smart",), "smart", ["a/big"]),
    (("b/*",), "claude-opus-4", ["b/m", "b/small"]),
])
def test_an_allow_list_narrows_what_a_name_means(patterns, requested, expected):
    assert labels(allowed(holder(*patterns), requested)) == expected


@pytest.mark.parametrize(("patterns", "requested"), [
    (("a/*",), "b/m"), (("small",), "m"), (("auto",), "m"), (("claude-*",), "claude-opus-4"), (("smart",), "a/big"), ((), "m")])
def test_what_is_not_allowed_is_403_and_named(patterns, requested):
    with pytest.raises(GatewayError) as caught:
        allowed(holder(*patterns or ("nothing",)), requested)
    assert (caught.value.status, caught.value.type, caught.value.param) == (403, "permission_error", "model")
    assert requested in caught.value.message


def test_without_an_allow_list_the_resolution_is_passed_on_as_it_is():
    assert allowed(holder("*"), "m") is resolve("m", HOUSE).targets


@pytest.mark.parametrize("more", [
    {}, {"host": "localhost"}, {"host": "[::1]:8788"}, {"host": "127.9.9.9"}, {"host": "app.localhost:1"},
    {"content-type": "application/json; charset=utf-8"}, {"content-type": "Application/JSON"}, {"content-type": "application/vnd.x+json"},
    {"origin": "http://localhost:3000"}, {"origin": "http://127.0.0.1:8788", "sec-fetch-site": "same-origin"},
    {"origin": "http://localhost:3000", "sec-fetch-site": "same-site"}, {"sec-fetch-site": "none"},
])
def test_a_local_program_passes(more):
    assert browser_guard({**JSON, **more}) is None


@pytest.mark.parametrize(("more", "status"), [
    ({"origin": "https://evil.example"}, 403), ({"origin": "null"}, 403), ({"origin": "http://localhost.evil.example"}, 403),
    ({"origin": "http://127.0.0.1.evil.example"}, 403), ({"origin": "http://localhost@evil.example"}, 403), ({"origin": ""}, 403),
    ({"sec-fetch-site": "cross-site"}, 403), ({"sec-fetch-site": "Cross-Site"}, 403),
    ({"host": "evil.example"}, 403), ({"host": "localhost.evil.example:8788"}, 403), ({"host": "192.168.1.5:8788"}, 403),
    ({"host": "evil.example@127.0.0.1"}, 403), ({"host": "localhost/x.evil.example"}, 403), ({"host": "localhost#.evil.example"}, 403),
    ({"host": "localhost?.evil.example"}, 403), ({"host": "localhost\\.evil.example"}, 403), ({"host": "localhost:1:2"}, 403),
    ({"origin": "http://localhost/.evil.example"}, 403), ({"origin": "http://evil.example#@localhost"}, 403),
    ({"host": ""}, 403), ({"host": "[::1"}, 403), ({"host": "0.0.0.0:8788"}, 403),
    ({"content-type": "text/plain"}, 415), ({"content-type": "application/x-www-form-urlencoded"}, 415),
    ({"content-type": "multipart/form-data; boundary=application/json"}, 415), ({"content-type": ""}, 415),
    ({"content-type": "text/plain;application/json"}, 415), ({"content-type": "text/json+json"}, 415),
])
def test_a_web_page_does_not(more, status):
    error = browser_guard({**JSON, **more})
    assert error is not None
    assert error.status == status


def test_a_request_without_a_body_needs_no_content_type():
    assert browser_guard({"host": "localhost"}, "GET") is None
    assert browser_guard({"host": "localhost"}, "POST").status == 415
    assert browser_guard({"host": "evil.example"}, "GET").status == 403


def test_an_origin_that_the_operator_allows_passes():
    page = {**JSON, "origin": "https://app.example", "sec-fetch-site": "cross-site"}
    assert browser_guard(page, "POST", ("https://app.example",)) is None
    assert browser_guard(page, "POST", ("*",)) is None
    assert browser_guard(page, "POST", ("https://other.example",)).status == 403
    assert browser_guard({**page, "host": "evil.example"}, "POST", ("*",)).status == 403


@pytest.mark.parametrize("name, values", [("Host", ("localhost", "evil.example")), ("Origin", ("http://localhost", "https://evil.example"))])
def test_a_header_that_is_there_twice_is_not_believed(name, values):
    for first, second in (values, values[::-1], (values[0], values[0])):
        headers = CIMultiDict({**JSON})
        headers.popall(name, None)
        headers.extend([(name, first), (name, second)])
        assert browser_guard(headers, "POST").status == 403


def test_header_names_may_be_written_in_any_case():
    assert browser_guard(CIMultiDict({"Host": "evil.example", "Content-Type": "application/json"})).status == 403


@pytest.mark.parametrize("host", ["LOCALHOST", "localhost.", "localhost:99999", "::1"])
def test_odd_spellings_of_loopback_raise_nothing(host):
    assert is_loopback(host) in (True, False)


@pytest.mark.parametrize(("name", "told", "far"), [
    ("X-Forwarded-For", "127.0.0.1", False), ("X-Forwarded-For", "::1, 127.0.0.1", False), ("x-forwarded-for", "10.1.2.3", True),
    ("X-Forwarded-For", "127.0.0.1, 10.1.2.3", True), ("X-Forwarded-For", "10.1.2.3, 127.0.0.1", True), ("X-Forwarded-For", "", True),
    ("X-Forwarded-For", "unknown", True), ("X-Forwarded-For", "[::1]:4711", False), ("X-Real-IP", "203.0.113.9", True),
    ("Forwarded", "for=127.0.0.1;proto=http", False), ("Forwarded", 'for="[::1]:80"', False), ("Forwarded", "proto=https", True),
    ("Forwarded", "for=127.0.0.1, for=203.0.113.9", True), ("Forwarded", "for=_hidden", True), ("X-Request-ID", "10.1.2.3", False),
])
def test_a_proxy_says_for_whom_it_asks(name, told, far):
    assert elsewhere(CIMultiDict({name: told})) is far


def test_a_second_line_counts_as_well():
    assert elsewhere(CIMultiDict([("X-Forwarded-For", "127.0.0.1"), ("X-Forwarded-For", "10.1.2.3")]))
