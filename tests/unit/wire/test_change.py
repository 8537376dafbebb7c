"""Fields of a finished body: left out, filled in, fixed; what no path names stays byte for byte."""
import json

import pytest

from gateway.wire.change import Change, changed

BODY = b'{"model":"m","messages":[{"role":"user","content":"a\\u00e9 1.10"}],"reasoning":{"effort":"low","summary":"auto"},"top_p":null}'


def after(change, body=BODY):
    return json.loads(changed(body, [change]))


def test_what_no_path_names_stays_as_it_was_written():
    made = changed(BODY, [Change(override=((("temperature",), 0.5),))])
    assert made == BODY[:-1] + b',"temperature":0.5}'


@pytest.mark.parametrize(("change", "path", "value"), [
    (Change(default=((("temperature",), 1),)), "temperature", 1),
    (Change(default=((("top_p",), 0.9),)), "top_p", 0.9),                           # null is as good as missing
    (Change(override=((("reasoning", "effort"), "high"),)), "reasoning", {"effort": "high", "summary": "auto"}),
    (Change(default=((("reasoning", "effort"), "high"),)), "reasoning", {"effort": "low", "summary": "auto"}),
    (Change(default=((("a", "b", "c"), [1]),)), "a", {"b": {"c": [1]}}),
    (Change(remove=(("reasoning", "summary"),)), "reasoning", {"effort": "low"}),
    (Change(remove=(("reasoning",),), override=((("reasoning", "effort"), "none"),)), "reasoning", {"effort": "none"}),
    (Change(override=((("top_p", "deep"), 1),)), "top_p", {"deep": 1}),
    (Change(override=((("model", "x"), 1),)), "model", {"x": 1}),
    (Change(default=((("model", "x"), 1),)), "model", "m"),                         # something else stands there
])
def test_a_field_is_changed_by_its_path(change, path, value):
    assert after(change)[path] == value


def test_removing_what_is_not_there_changes_nothing():
    assert changed(BODY, [Change(remove=(("a",), ("a", "b"), ("model", "b"), ("reasoning", "c", "d")))]) == BODY


def test_later_changes_see_what_earlier_ones_did_and_never_each_others_values():
    empty = Change(override=((("metadata",), {}),))
    more = Change(override=((("metadata", "a"), 1),))
    assert json.loads(changed(BODY, [empty, more]))["metadata"] == {"a": 1}
    assert json.loads(changed(BODY, [empty]))["metadata"] == {}
