"""Which requests are the same: whatever may change the answer changes the key, and nothing else does."""
import json
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cache.key import DEFAULTS, raw_key, read, request_key, temperature
from gateway.wire.openai_chat import schema as chat

HERE = ("laptop", "*", "", "chat")
ASK = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "temperature": 0.5, "max_tokens": 16}


def key(data, wire="openai-chat", address=HERE):
    return request_key(address, data, wire)


def fields(struct):
    return [field.encode_name for field in msgspec.structs.fields(struct)]


# Every field that chat is known to have, those of other formats, and one that nobody has heard of.
KNOWN = sorted({*fields(chat.Body), "min_p", "top_k", "system", "thinking", "stop_sequences", "input", "instructions", "reasoning",
                "text", "contents", "generationConfig", "safetySettings", "unheard_of"})


@pytest.mark.parametrize("name", KNOWN)
def test_every_field_changes_the_key(name):
    assert key(ASK) != key({**ASK, name: "other"}) != key({**ASK, name: 7}) != key(ASK)


json_values = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | st.text("abü", max_size=3),
                           lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=2), max_leaves=6)


@given(st.dictionaries(st.sampled_from(["messages", "tools", "stop", "x", "response_format"]), json_values, max_size=4), st.randoms())
def test_the_order_of_keys_changes_nothing_at_any_depth(data, dice):
    def shuffled(value):
        if isinstance(value, dict):
            items = [(name, shuffled(inner)) for name, inner in value.items()]
            dice.shuffle(items)
            return dict(items)
        return [shuffled(inner) for inner in value] if isinstance(value, list) else value
    assert key(data) == key(shuffled(data))


@given(json_values, json_values)
def test_different_values_inside_have_different_keys(one, other):
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (key({"messages": [one]}) == key({"messages": [other]})) == same


@pytest.mark.parametrize("wire", sorted(DEFAULTS))
def test_what_a_missing_field_means_may_be_said(wire):
    assert key({"messages": []}, wire) == key({"messages": [], **DEFAULTS[wire], "stop": None}, wire)


def test_a_number_is_no_switch():
    assert key({**ASK, "n": True}) != key(ASK) and key({**ASK, "stream": 0}) != key(ASK)


def test_tenants_and_places_never_share():
    places = [HERE, ("phone", *HERE[1:]), ("laptop", "a*", *HERE[2:]), ("laptop", "*", "", "messages"), ("laptop*", "", "", "chat")]
    assert len({key(ASK, address=place) for place in places}) == len(places)
    assert len({raw_key(place, b"{}") for place in places}) == len(places)


def test_a_body_that_is_no_object_has_no_key():
    assert read(b"[1]") is None and read(b"{") is None and read(b'{"a": 1}') == {"a": 1}


@pytest.mark.parametrize(("data", "warm"), [
    ({}, None), ({"temperature": 1}, 1.0), ({"temperature": "1"}, None), ({"generationConfig": {"temperature": 0.2}}, 0.2),
    ({"generation_config": {"temperature": 2}}, 2.0), ({"options": {"temperature": 1.5}}, 1.5), ({"options": 3}, None)])
def test_the_temperature_is_found_in_every_format(data, warm):
    assert temperature(data) == warm


def test_random_bytes_are_read_or_refused():
    dice = random.Random(1)
    for _ in range(200):
        read(dice.randbytes(20))
