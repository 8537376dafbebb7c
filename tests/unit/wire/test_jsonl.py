"""Streams without events: one array, or a value a line."""
import json

import pytest

from gateway.wire import jsonl


@pytest.mark.parametrize("values", [[{"a": 1}], [{"a": "x\n"}, 2, [3]]])
def test_the_elements_make_one_array_that_any_parser_reads(values):
    pieces = [jsonl.element(json.dumps(value).encode(), first=not i) for i, value in enumerate(values)]
    assert json.loads(b"".join(pieces) + jsonl.CLOSE) == values


def test_a_line_is_a_value_and_its_end():
    assert jsonl.line(b'{"a":1}') + jsonl.line(b"2") == b'{"a":1}\n2\n'
