"""What the fuzzer found interesting, or broke once, is read again; a million new inputs: scripts/fuzz."""
import json
from random import Random

import pytest

from tests.fuzz.__main__ import corpus, fuzz
from tests.fuzz.engine import LARGEST, Finding, Mutator, attempt, dice_of, pieces, smaller
from tests.fuzz.targets import TARGETS

FRESH = 60                                       # new inputs for each target in every run


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_is_read_without_a_surprise(name):
    kept = corpus(name)
    assert kept, "scripts/fuzz --keep makes it"
    found = [attempt(name, TARGETS[name].run, data) for data in [*TARGETS[name].seeds, *kept]]
    assert [one for one in found if isinstance(one, Finding)] == []


@pytest.mark.parametrize("name", TARGETS)
def test_some_new_inputs_too(name):
    assert fuzz(name, FRESH, seed=7).findings == []


def test_a_finding_is_told_with_its_place_and_made_small():
    def run(data):
        if b"X" in data:
            raise KeyError("x")
        return "fine"
    got = attempt("t", run, b"a" * 500 + b"X" + b"b" * 500)
    assert isinstance(got, Finding) and got.what.startswith("KeyError at test_corpus.py:")
    assert smaller(got, run).data == b"X"
    assert attempt("t", run, b"abc") == "fine"


def test_inputs_differ_and_stay_bounded_and_come_again_with_their_seed():
    seeds = [json.dumps({"a": [1, {"b": "c"}], "d": None}).encode(), b"data: {\"x\": 1}\n\ndata: [DONE]\n\n"]
    made = [Mutator(seeds, Random(3)).make() for _ in range(2)]
    assert made[0] == made[1]
    maker = Mutator(seeds, Random(3))
    many = [maker.make() for _ in range(500)]
    assert len(set(many)) > 400 and max(map(len, many)) <= LARGEST


def test_where_an_input_is_cut_belongs_to_it():
    data = b"0123456789" * 20
    assert pieces(data, dice_of(data)) == pieces(data, dice_of(data)) and b"".join(pieces(data, dice_of(data))) == data
