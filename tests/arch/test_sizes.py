"""A file answers one question in under 400 lines, a function in under 40."""
import pytest

from tests.arch.source import functions, modules, name, parsed

FILE_LINES = 400
FUNCTION_LINES = 40

# Functions that are longer, with their length. The list may only shrink: mend one, take its row out.
LONGER: dict[str, int] = {}


def lengths() -> dict[str, int]:
    return {f"{name(path)}:{qualified}": (node.end_lineno or node.lineno) - node.lineno + 1
            for path in modules() for qualified, node in functions(parsed(path))}


@pytest.mark.parametrize("path", modules(), ids=name)
def test_a_file_is_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) < FILE_LINES


def test_a_function_is_short():
    too_long = {where: n for where, n in lengths().items() if n >= FUNCTION_LINES and n > LONGER.get(where, 0)}
    assert not too_long


def test_the_list_of_longer_functions_only_shrinks():
    found = lengths()
    stale = {where for where, n in LONGER.items() if found.get(where, 0) != n}
    assert not stale, "mended or moved: correct or remove these rows"
