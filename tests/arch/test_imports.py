"""Imports point down, and what decides does no I/O."""
import subprocess
import sys
from pathlib import Path

import pytest

from tests.arch.source import ROOT, imports, modules, name, parsed

PURE = ("core", "wire", "stream", "routing")
IO = frozenset({"asyncio", "aiohttp", "socket", "sqlite3", "aiosqlite", "http", "urllib3", "requests", "ssl", "selectors",
                "subprocess", "threading"})
TIMELESS = ("stream", "routing")        # clock and randomness are handed in

# Installed and imported only by the feature that needs them, on first use.
HEAVY = frozenset({"rich", "jsonschema_rs", "prometheus_client", "click", "cryptography"})


def test_the_layers_hold():
    tool = Path(sys.executable).parent / "lint-imports"
    result = subprocess.run([tool, "--no-logo", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("folder", PURE)
def test_what_decides_does_no_io(folder):
    found = {f"{name(path)}:{line} {module}" for path in modules(f"gateway/{folder}")
             for module, line in imports(parsed(path)) if module in IO}
    assert not found


@pytest.mark.parametrize("folder", TIMELESS)
def test_what_decides_asks_no_clock_and_throws_no_dice(folder):
    found = {f"{name(path)}:{line} {module}" for path in modules(f"gateway/{folder}")
             for module, line in imports(parsed(path)) if module in {"time", "random", "secrets", "datetime"}}
    assert not found


def test_heavy_libraries_are_imported_on_first_use_only():
    found = {f"{name(path)}: {module}" for path in modules() if "cli" not in path.parts
             for node in parsed(path).body
             for module, _ in imports(_as_module(node)) if module in HEAVY}
    assert not found


def _as_module(node):
    """A statement at module level, unless it is a definition: what is imported inside is imported on use."""
    import ast
    deferred = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    typing_only = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
    return ast.Module(body=[] if isinstance(node, deferred) or typing_only else [node], type_ignores=[])
