"""What lies in the repository: the files and parsed modules that the architecture tests look at."""
import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "gateway"


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def modules(folder: str = "gateway") -> tuple[Path, ...]:
    """Every Python file below a folder of the package."""
    return tuple(sorted((ROOT / folder).rglob("*.py")))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """(qualified name, node) of every function, nested ones included."""
    for node in ast.iter_child_nodes(tree):
        named = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        inner = f"{prefix}{node.name}." if named else prefix  # type: ignore[attr-defined]
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield inner[:-1], node
        yield from functions(node, inner)


def imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """(top-level module, line) of every import, deferred ones included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.partition(".")[0], node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0], node.lineno


def tracked() -> list[Path]:
    """Files that a commit would hold. Without git or outside its work tree: everything below the known folders."""
    try:
        listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                                capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return [path for part in ("gateway", "tests", "scripts", "benchmarks") for path in (ROOT / part).rglob("*")
                if path.is_file() and "__pycache__" not in path.parts]
    return [ROOT / line for line in listed.splitlines() if (ROOT / line).is_file()]
