"""Every module says which question it answers; nothing is left for later, and nothing outside the repository is named."""
import ast
import re

import pytest

from tests.arch.source import ROOT, modules, name, parsed, tracked

# Put together, so that this file does not hold them.
LEFT_FOR_LATER = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b|NotImplemented" r"Error")
EMPTY_NOUNS = re.compile(r"(Manager|Helper|Helpers|Util|Utils|Service)$")
OUTSIDE = re.compile(r"\.\./shar" r"ed|(?<![\w.])/wor" r"k/")
MAY_NAME_OUTSIDE = {".ci/run", ".ci/clients"}


@pytest.mark.parametrize("path", [p for p in modules() if p.read_bytes()], ids=name)
def test_a_module_says_what_it_answers(path):
    text = ast.get_docstring(parsed(path))
    assert text, "the first docstring line says which question this file answers"
    assert 10 <= len(text.splitlines()[0]) <= 135


@pytest.mark.parametrize("path", modules(), ids=name)
def test_nothing_is_left_for_later(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert not [f"{n}: {line.strip()}" for n, line in enumerate(lines, 1) if LEFT_FOR_LATER.search(line)]


def test_names_say_something():
    classes = {f"{name(path)}: {node.name}" for path in modules() for node in ast.walk(parsed(path))
               if isinstance(node, ast.ClassDef) and EMPTY_NOUNS.search(node.name)}
    files = {name(path) for path in modules() if EMPTY_NOUNS.search(path.stem.capitalize())}
    assert not classes | files


def test_nothing_outside_the_repository_is_named():
    found = []
    for path in tracked():
        if name(path) in MAY_NAME_OUTSIDE or path.suffix == ".lock":
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{name(path)}:{n}" for n, line in enumerate(text.splitlines(), 1) if OUTSIDE.search(line)]
    assert not found


def test_the_top_level_stays_small():
    known = {"setup.cfg", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md",
             "gateway", "tests", "benchmarks", "scripts"}
    top = {path.relative_to(ROOT).parts[0] for path in tracked()}
    assert {entry for entry in top if not entry.startswith(".")} <= known
