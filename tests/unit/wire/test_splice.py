"""A field of a JSON object is changed, and every other byte stays."""
import pytest

from gateway.wire import splice


@pytest.mark.parametrize(("raw", "old", "new"), [
    (b'{"model":"a","x":1.50}', b'"model":"a"', b'"model":"b/\\"c"'),
    (b'{ "x" : 1e5 , "model" : "a" }', b'"model" : "a"', b'"model" : "b/\\"c"'),
    (b'{"messages":[{"content":"\\u00e9 \\"model\\":\\"a\\""}],"model":\n"a"}', b'"model":\n"a"', b'"model":\n"b/\\"c"'),
])
def test_the_model_is_renamed_on_the_bytes(raw, old, new):
    assert splice.set_model(raw, "a", 'b/"c') == raw.replace(old, new)


@pytest.mark.parametrize("raw", [
    b'{"x":{"model":"a"},"model":"a"}',                      # twice
    b'{"model":"a","model":"b"}',                            # repeated
    b'{"x":{"model":"a"},"\\u006dodel":"a"}',                # the real key is spelt with an escape
    b'{"x":["model"],"mod\\u0065l":"a"}',
    b'{"model":"\\u0061"}',                                  # the value is
    b'{"messages":[]}',
])
def test_where_the_bytes_cannot_tell_nothing_is_guessed(raw):
    assert splice.set_model(raw, "a", "b") is None


def test_a_missing_model_is_not_found():
    assert splice.set_model(b'{"x":"model"}', "", "b") is None


def test_raw_values_survive_the_long_way_round():
    raw = b'{"model":"a","model":"z","n":1.0000000000000000001,"nested":{"b":1,"a":[ 1 , 2 ],"a":3}}'
    top = dict(splice.fields(raw))
    top["model"] = b'"new"'
    assert splice.join(top) == b'{"model":"new","n":1.0000000000000000001,"nested":{"b":1,"a":[ 1 , 2 ],"a":3}}'


def test_members_are_appended():
    assert splice.set_model(b'{"model":"a" }\n', "a", "z", b',"b":{"c":2}') == b'{"model":"z" ,"b":{"c":2}}\n'


def test_a_name_with_half_a_character_is_left_to_the_parser():
    assert splice.set_model(b'{"model":"\\ud800"}', "\ud800", "m") is None
