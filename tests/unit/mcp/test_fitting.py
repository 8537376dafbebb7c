"""A long answer is cut until it fits, and says what was cut."""
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.mcp.fitting import fitted

VALUES = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=300),
                      lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=5), inner, max_size=5), max_leaves=30)


def test_what_fits_stays_as_it_is():
    assert fitted(b'{"a":[1,2,3]}') == b'{"a":[1,2,3]}'


def test_the_longest_list_is_cut_first_and_named():
    told = msgspec.json.decode(fitted(msgspec.json.encode({"few": [1], "in": {"a.b": list(range(1000))}, "text": "x" * 300}), 2_000))
    assert told["few"] == [1] and told["text"] == "x" * 300
    rows = told["in"]["a.b"]
    assert rows == list(range(len(rows))) and told["truncated"] == {"in.a.b": f"{len(rows)} of 1000"}


def test_what_cannot_be_cut_is_not_told():
    told = msgspec.json.decode(fitted(msgspec.json.encode({f"field{n}": n for n in range(1000)}), 500))
    assert "ask for less" in told["truncated"][""]


@settings(max_examples=100, deadline=None)
@given(VALUES, st.integers(150, 2_000))
def test_it_is_never_longer_and_always_json(value, most):
    assert len(fitted(msgspec.json.encode(value), most)) <= most
