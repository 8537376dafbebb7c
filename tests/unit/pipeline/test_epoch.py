"""Another configuration that may answer otherwise is another epoch; the same one is the same in every process; keys have marks."""
import os
import re
import subprocess
import sys

import msgspec
import pytest

from gateway.cache.key import HEADERS
from gateway.config import schema
from gateway.config.load import load
from gateway.config.schema import Config
from gateway.core.secret import Secret
from gateway.pipeline.epoch import ANSWERING, AROUND, epoch, plain
from gateway.policy.keys import PLAIN, ClientKey, Manner, Principal
from gateway.routing.combos import Plan, Shape
from gateway.upstream.guard import FORWARDED


def other(value):
    """Another value of the same type, or None where there is no such thing to be changed."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, tuple):
        return (*value, "x")
    if isinstance(value, frozenset):
        return value | {"x"}
    if isinstance(value, dict):
        return {**value, "x": "y"}
    return "x" if value is None else None


def variants(table, path=""):
    """(path, the same table with one leaf changed), for each leaf."""
    for name in table.__struct_fields__:
        value = getattr(table, name)
        where = f"{path}.{name}".lstrip(".")
        if isinstance(value, msgspec.Struct):
            for inner, changed in variants(value, where):
                yield inner, msgspec.structs.replace(table, **{name: changed})
        elif not isinstance(value, Secret) and (changed := other(value)) is not None:
            yield where, msgspec.structs.replace(table, **{name: changed})


@pytest.fixture(scope="module")
def bare():
    return load(None, {})


def test_every_section_is_known_to_change_answers_or_not_to():
    names = {field.name for field in msgspec.structs.fields(Config)}
    assert names == {*ANSWERING, *AROUND} and not {*ANSWERING} & {*AROUND}


SECTIONS = [(name, where) for name in ANSWERING if isinstance(getattr(Config(), name), msgspec.Struct)
            for where, _ in variants(getattr(Config(), name))]


@pytest.mark.parametrize(("section", "where"), SECTIONS, ids=lambda word: word)
def test_every_setting_that_may_change_an_answer_makes_another_epoch(bare, section, where):
    config = bare.config
    changed = dict(variants(getattr(config, section)))[where]
    made = msgspec.structs.replace(bare, config=msgspec.structs.replace(config, **{section: changed}))
    assert epoch(made) != epoch(bare)


def test_there_are_settings_of_every_policy():
    assert {("thinking", "mode"), ("guardrails", "pii.requests"), ("guardrails", "secrets.action"), ("guardrails", "injection.action"),
            ("context", "overflow"), ("compression", "mode"), ("images", "max_side")} <= set(SECTIONS)


@pytest.mark.parametrize("section", AROUND)
def test_what_is_around_an_answer_makes_no_other_one(bare, section):
    made = msgspec.structs.replace(bare, config=msgspec.structs.replace(bare.config, **{section: None}))
    assert epoch(made) == epoch(bare)


def test_combos_rules_and_providers_count_to_their_last_letter(bare):
    long = "x" * 300                                 # a pattern's own spelling is cut after 200
    shapes = [None, Shape(), Shape(system_message="a"), Shape(keeps=re.compile(long)), Shape(keeps=re.compile(long + "y")),
              Shape(keeps=re.compile(long, re.IGNORECASE)), Shape(guards_off=frozenset({"pii"})),
              Shape(guards_off=frozenset({"pii", "secrets"}))]
    made = [epoch(msgspec.structs.replace(bare, combos=(Plan(name="c", shape=shape),))) for shape in shapes]
    assert len(set(made)) == len(shapes)
    rules = [schema.RuleTable(override={"a": 1}), schema.RuleTable(override={"a": 2}), schema.RuleTable(override={"a": {"b": [1]}})]
    told = [epoch(msgspec.structs.replace(bare, config=msgspec.structs.replace(bare.config, rules=(rule,)))) for rule in rules]
    assert len(set(told)) == len(rules)


def test_secrets_are_no_part_of_it():
    assert plain(Secret("a")) == plain(Secret("b")) and plain(Secret("a")) != plain(Secret(""))


SAY = ("from gateway.config.load import load; from gateway.pipeline.epoch import epoch; import msgspec;"
       "from gateway.routing.combos import Plan, Shape;"
       "s = load(None, {}); print(epoch(msgspec.structs.replace(s, combos=(Plan(name='c', providers=frozenset('abcdef'),"
       "shape=Shape(guards_off=frozenset({'pii', 'secrets', 'webhook'}))),))))")


def test_it_is_the_same_in_every_process():
    said = {subprocess.run([sys.executable, "-c", SAY], capture_output=True, check=True,
                           env={**os.environ, "PYTHONHASHSEED": seed}).stdout for seed in ("1", "2")}
    assert len(said) == 1 and said != {b""}


# ---------------------------------------------------------------------- what belongs to one key
def mark(**manner):
    return Principal(ClientKey(name="k", sha256="", manner=Manner(**manner))).mark


@pytest.mark.parametrize("field", [field.name for field in msgspec.structs.fields(Manner)])
def test_everything_of_a_keys_manner_is_in_its_mark(field):
    assert mark(**{field: other(getattr(PLAIN, field))}) != mark()


def test_a_mark_cannot_be_made_by_another_name():
    made = [mark(), mark(instructions="a"), mark(thinking="off"), mark(instructions="off"), mark(guards_off=frozenset({"pii"})),
            Principal(ClientKey(name="k", sha256="", models=("a",))).mark, Principal(ClientKey(name="a", sha256="", models=("k",))).mark,
            Principal(None).mark]
    assert len(set(made)) == len(made)


def test_what_a_client_tells_an_upstream_is_in_the_key():
    assert FORWARDED <= set(HEADERS)
