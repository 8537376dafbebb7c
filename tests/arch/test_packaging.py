"""What is installed is what is declared, and what the README says is so."""
import re
import tomllib

import pytest

from gateway.cli import COMMANDS
from gateway.config.load import loads
from tests.arch.source import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
LOCKS = {"requirements.lock": "all", "requirements-dev.lock": "dev"}
README = (ROOT / "README.md").read_text(encoding="utf-8")


def canonical(requirement):
    return re.match(r"[A-Za-z0-9._-]+", requirement).group().lower().replace("_", "-").replace(".", "-")


def pinned(lock):
    text = (ROOT / "scripts" / "deploy" / lock).read_text(encoding="utf-8")
    entries = [entry for entry in re.split(r"\n(?=\S)", text.replace("\\\n", " ")) if entry.strip()]
    return {canonical(entry): entry for entry in entries}


def declared(extra):
    found = {canonical(line) for line in PROJECT["dependencies"] + EXTRAS[extra]}
    for line in EXTRAS[extra]:
        if line.startswith("gateway["):
            for name in line.partition("[")[2].rstrip("]").split(","):
                found |= declared(name)
    return found - {"gateway"}


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_everything_by_hash(lock):
    entries = pinned(lock)
    assert declared(LOCKS[lock]) <= set(entries), "scripts/lock makes it anew"
    assert all("==" in entry and "--hash=sha256:" in entry for entry in entries.values())


def test_what_is_developed_with_is_what_is_deployed():
    deployed, developed = pinned("requirements.lock"), pinned("requirements-dev.lock")
    assert {name: developed.get(name, "").split()[0] for name in deployed} == {name: e.split()[0] for name, e in deployed.items()}


def test_every_dependency_has_a_lower_bound():
    lines = PROJECT["dependencies"] + [line for extra in EXTRAS.values() for line in extra if not line.startswith("gateway[")]
    assert not [line for line in lines if ">=" not in line.partition(";")[0]]


def test_the_extras_of_the_contract_are_there():
    assert set("mcp images tokens secrets redis postgres otel sso watch all".split()) <= set(EXTRAS)


@pytest.mark.parametrize("block", re.findall(r"```toml\n(.*?)```", README, re.S))
def test_the_readme_s_configuration_is_good(block):
    names = re.findall(r"\$\{env:(\w+)\}", block)
    assert loads(block, dict.fromkeys(names, "value")).providers


def test_the_readme_names_every_command_and_only_files_that_exist():
    commands = README[README.index("## Commands"):].split("\n\n")[1]
    assert all(verb in commands for verb in COMMANDS)
    files = re.findall(r"`((?:scripts|tests|benchmarks|gateway|\.ci)/[\w./-]+)`", README)
    assert files
    assert not [file for file in files if not (ROOT / file).exists()]
