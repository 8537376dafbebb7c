"""A client key opens the door, by whichever header it comes."""
import pytest
from multidict import CIMultiDict

from gateway.core.errors import GatewayError
from gateway.policy.keys import ClientKey, KeyRing, digest, matcher

RING = KeyRing([ClientKey(name="laptop", sha256=digest("gw-laptop")),
                ClientKey(name="ci", sha256=digest("gw-ci"), models=("a/*", "gpt-4o"), rpm=5),
                ClientKey(name="old", sha256=digest("gw-old"), expires_at=100.0)], wall=lambda: 99.0)


def refusal(ring, headers=None, query_key=None):
    with pytest.raises(GatewayError) as caught:
        ring.authenticate(headers or {}, query_key)
    return caught.value


@pytest.mark.parametrize(("headers", "query_key", "name"), [
    ({"authorization": "Bearer gw-laptop"}, None, "laptop"),
    ({"authorization": "bearer   gw-ci  "}, None, "ci"),
    ({"x-api-key": "gw-ci"}, None, "ci"),
    ({"x-goog-api-key": "gw-ci"}, None, "ci"),
    ({}, "gw-ci", "ci"),
    ({"authorization": "Bearer gw-laptop", "x-api-key": "gw-ci"}, None, "laptop"),
    ({"authorization": "Bearer dummy", "x-api-key": "gw-ci"}, None, "ci"),
    ({"x-api-key": "dummy", "x-goog-api-key": "gw-laptop"}, "gw-ci", "laptop"),
    ({"authorization": "Basic Zm9vOmJhcg=="}, "gw-ci", "ci"),
    ({"authorization": "Bearer gw-old"}, None, "old"),
])
def test_a_key_is_known_wherever_it_stands(headers, query_key, name):
    assert RING.authenticate(headers, query_key).name == name


def test_header_names_may_be_written_in_any_case():
    assert RING.authenticate(CIMultiDict({"Authorization": "Bearer gw-ci"})).name == "ci"
    assert RING.authenticate(CIMultiDict({"X-Api-Key": "gw-ci"})).name == "ci"


@pytest.mark.parametrize("token", ["gw-wrong-KEYCANARY", "gw-laptopKEYCANARY", "KEYCANARY\udcff", "KEYCANARY" * 10_000, "gw-lapto"])
def test_a_wrong_key_is_refused_quietly(token):
    for headers, query_key in (({"authorization": f"Bearer {token}"}, None), ({"x-api-key": token}, None), ({}, token)):
        error = refusal(RING, headers, query_key)
        assert (error.status, error.code, error.kind) == (401, "invalid_api_key", "unauthorized")
        assert "KEYCANARY" not in error.message
        assert len(error.message) < 100


@pytest.mark.parametrize("headers", [{}, {"authorization": ""}, {"authorization": "gw-laptop"}, {"authorization": "Basic gw-laptop"},
                                     {"x-api-key": ""}, {"cookie": "key=gw-laptop"}])
def test_without_a_key_the_caller_is_told_how_to_send_one(headers):
    assert "Authorization: Bearer" in refusal(RING, headers).message


def test_the_query_counts_only_where_it_is_passed_in():
    assert refusal(RING, {}).status == 401


def test_an_expired_key_is_refused():
    late = KeyRing([ClientKey(name="old", sha256=digest("gw-old"), expires_at=100.0)], wall=lambda: 100.0)
    assert "expired" in refusal(late, {"x-api-key": "gw-old"}).message


def test_without_keys_everybody_is_welcome_and_anonymous():
    ring = KeyRing([])
    assert ring.open
    for headers in ({}, {"authorization": "Bearer whatever"}):
        principal = ring.authenticate(headers)
        assert principal.anonymous
        assert principal.allows("anything")
        assert not principal.limited
    assert not RING.open


def test_a_principal_prints_its_name_only():
    assert repr(RING.authenticate({"x-api-key": "gw-ci"})) == "Principal('ci')"


@pytest.mark.parametrize(("patterns", "name", "allowed"), [
    (("*",), "x/y", True), (("gpt-4o", "*"), "x", True), (("a/*",), "a/org/m", True), (("a/*",), "b/m", False), (("a/*",), "a", False),
    (("gpt-*",), "gpt-4o", True), (("*-mini",), "gpt-4o-mini", True), (("m",), "m2", False), (("m.1",), "mx1", False),
    (("claude-[1m]",), "claude-[1m]", True), (("claude-[1m]",), "claude-1", False), (("a*b*c",), "a/b/c", True), (("m",), "m\n", False),
])
def test_patterns_name_whole_models(patterns, name, allowed):
    principal = KeyRing([ClientKey(name="k", sha256=digest("k"), models=patterns)]).principals[0]
    assert principal.allows(name) is allowed


def test_no_pattern_matches_nothing():
    assert matcher(())("") is None
