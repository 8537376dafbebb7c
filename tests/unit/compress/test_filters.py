"""Rule packs do what their own tests say; one that is broken, unbounded or without tests is refused with the reason."""
import pytest

from gateway.compress import filters
from gateway.compress.toolfilter import failures

NAMED = {"git-status", "git-log", "git-diff", "package-install", "vitest-jest", "pytest", "go-test", "cargo", "tsc", "lint", "build", "docker",
         "file-list", "search", "json-dump", "stack-trace", "fallback"}
PACKS = {one.name: one for one in filters.builtin()}
GOOD = "name = 'mine'\ncommands = ['^deploy']\ndrop = ['^step']\n[[tests]]\ncommand = 'deploy'\ninput = \"step\\nend\"\noutput = 'end'\n"


def test_every_command_of_the_list_has_its_filter():
    assert set(PACKS) >= NAMED
    assert list(PACKS)[-1] == "fallback", "asked last"


@pytest.mark.parametrize("name", PACKS)
def test_a_pack_passes_its_own_tests(name):
    assert not list(failures(PACKS[name]))


def test_a_test_that_does_not_hold_is_found():
    one = filters.parse(GOOD)
    assert list(failures(one)) == [(0, "end\n[1 lines of no interest left out]")]


def test_json_is_as_good_as_toml():
    assert filters.parse('{"name": "mine", "outputs": ["x"], "tests": [{"input": "x", "output": "x"}]}', "json").outputs.search("a\nx")


@pytest.mark.parametrize(("text", "told"), [
    (GOOD.replace("drop", "dorp"), "dorp"),
    (GOOD.replace("^step", "(a+)+$"), "for ever"),
    (GOOD.replace("^step", "(a"), "no pattern"),
    (GOOD.replace("^step", "x" * 301), "300"),
    (GOOD.replace("commands = ['^deploy']", ""), "neither commands nor outputs"),
    (GOOD.partition("[[tests]]")[0], "tests"),
    (GOOD.replace("'mine'", "'no name'"), "name"),
    ("max_lines = 1\n" + GOOD, "max_lines"),
    ("name = ", "Invalid"),
])
def test_what_is_no_filter_is_refused_with_the_reason(text, told):
    with pytest.raises(ValueError, match=told):
        filters.parse(text)
