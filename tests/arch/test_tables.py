"""The tables equal the files on disk: what is listed exists, and what exists is listed."""
import ast
import importlib
import pkgutil
import re
import tomllib

import click
import msgspec
import pytest

from gateway.cli import COMMANDS
from gateway.core.errors import KINDS
from gateway.providers.registry import Provider
from gateway.routing.outcomes import OUTCOMES
from gateway.surfaces.routes import ROUTES
from gateway.wire import WIRES
from tests.arch.source import PACKAGE, modules, parsed

CATALOG = sorted((PACKAGE / "providers" / "catalog").glob("*.toml"))

# Modules of gateway/cli that are no verbs: what verbs share.
SHARED_BY_VERBS = {"clients", "copies", "histogram", "loop", "machine", "remote", "show", "source"}

# Wires are folders of four files, but for formats that are small enough for one.
WIRE_FILES = {"schema", "request", "reply", "stream"}


def submodules(folder):
    return {module.name for module in pkgutil.iter_modules([str(PACKAGE / folder)])}


def test_every_command_is_a_file_and_every_file_a_command():
    assert {verb.replace("-", "_") for verb in COMMANDS} == submodules("cli") - SHARED_BY_VERBS


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_command_explains_itself_with_an_example(verb):
    command = importlib.import_module(f"gateway.cli.{verb.replace('-', '_')}").command
    assert isinstance(command, click.Command)
    assert command.help
    assert f"gateway {verb}" in (command.epilog or "")


@pytest.mark.parametrize("name", WIRES)
def test_a_wire_is_where_its_name_says(name):
    wire = WIRES[name]
    assert wire.name == name
    assert type(wire).__module__.startswith("gateway.wire." + name.replace("-", "_"))


# Formats of the house's plan that may be written before a surface or a provider uses them.
WRITTEN_AHEAD = {"openai_responses"}


def test_every_wire_folder_is_in_the_table():
    folders = {path.name for path in (PACKAGE / "wire").iterdir() if (path / "__init__.py").exists()}
    assert folders <= {name.replace("-", "_") for name in WIRES} | WRITTEN_AHEAD
    for folder in folders:
        assert submodules(f"wire/{folder}") >= WIRE_FILES


def test_every_route_has_a_wire_a_handler_and_a_path_of_its_own():
    assert {door.wire for door in ROUTES} <= set(WIRES)
    assert all(callable(door.handler) for door in ROUTES)
    assert len({(door.method, door.path, door.tail) for door in ROUTES}) == len(ROUTES)


def test_every_kind_of_failure_has_an_outcome():
    assert set(OUTCOMES) == set(KINDS)


def test_every_kind_of_failure_is_raised_or_classified_somewhere():
    named = {node.value for path in modules() if path.name not in ("errors.py", "outcomes.py")
             for node in ast.walk(parsed(path)) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert set(KINDS) <= named


@pytest.mark.parametrize("path", CATALOG, ids=lambda path: path.stem)
def test_a_catalogue_file_is_named_after_its_provider(path):
    entry = tomllib.loads(path.read_text(encoding="utf-8"))
    assert entry.get("id", path.stem) == path.stem
    assert entry.get("wire", "openai-chat") in WIRES


def test_providers_are_facts():
    assert issubclass(Provider, msgspec.Struct)
    assert Provider.__struct_config__.frozen


def test_every_client_that_can_be_set_up_is_a_file():
    from gateway.cli.clients import CLIENTS
    shared = {"place", "writing", "asking"}
    assert {name.replace("-", "_") for name in CLIENTS} == submodules("cli/clients") - shared


def test_the_layout_names_every_folder():
    rows = re.findall(r"^\| `(\w+)/` \|", (PACKAGE / "README.md").read_text(encoding="utf-8"), re.M)
    assert sorted(rows) == sorted(folder.parent.name for folder in PACKAGE.glob("*/__init__.py"))
