"""No code that runs on the event loop may say what blocks it: files, names, processes, sleep. Work for a thread is listed."""
import ast
from pathlib import Path

import pytest

import gateway
from tests.arch.source import functions, imports, modules, name, parsed

ON_THE_LOOP = ("pipeline", "surfaces", "upstream", "observe", "policy", "routing", "stream", "wire", "memory", "core", "mock")
MODULES = frozenset({"subprocess", "sqlite3", "shutil", "tempfile", "glob", "requests", "urllib3", "ftplib", "smtplib", "telnetlib",
                     "dbm", "shelve", "multiprocessing", "fileinput"})
CALLS = frozenset({
    "open", "input", "print", "time.sleep", "sleep", "io.open", "os.open", "os.system", "os.popen", "os.stat", "os.listdir", "os.scandir",
    "os.walk", "os.fsync", "os.replace", "os.rename", "os.remove", "os.unlink", "os.makedirs", "os.mkdir", "os.waitpid", "os.path.exists",
    "os.path.getsize", "os.path.isfile", "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getfqdn",
    "socket.create_connection", "urllib.request.urlopen", "urlopen", "select.select", "asyncio.run", "importlib.import_module",
})
METHODS = frozenset({"read_text", "write_text", "read_bytes", "write_bytes", "iterdir", "rglob", "run_until_complete", "run_forever", "mkdir",
                     "unlink", "touch", "is_file", "is_dir", "urlopen"})

# What is called by a thread, or once. A row goes when its function does.
ELSEWHERE = {
    "gateway/upstream/aiohttp_transport.py:AiohttpTransport._pool": "a module, at the first use of a SOCKS proxy",
    "gateway/upstream/encoding.py:_Brotli.__init__": "a module, at the first answer in br",
    "gateway/upstream/encoding.py:_Zstd._new": "a module, at the first answer in zstd",
    "gateway/upstream/failures.py:_lacking": "the null device, after a name could not be resolved: are there file descriptors left?",
    "gateway/pipeline/shrink.py:Breather.__call__": "in a thread only: gives the interpreter to the loop",
    "gateway/mock/bench_upstream.py:_main": "a program of its own",
    "gateway/mock/bench_upstream.py:main": "a program of its own",
    "gateway/mock/load.py:run_bench": "a program of its own",
    "gateway/mock/load.py:main": "a program of its own",
}


def blocking(tree):
    """(function, what) of every call that blocks."""
    for where, node in [("", tree), *functions(tree)]:
        for call in _calls(node):
            told = ast.unparse(call.func)
            if told in CALLS or (isinstance(call.func, ast.Attribute) and call.func.attr in METHODS):
                yield where, told


def _calls(node):
    """Calls of a function's own body: what stands in a function inside is that one's."""
    inner = (ast.FunctionDef, ast.AsyncFunctionDef)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, inner):
            continue
        if isinstance(child, ast.Call):
            yield child
        yield from _calls(child)


def found():
    return [(f"{name(path)}:{where}", what) for folder in ON_THE_LOOP for path in modules(f"gateway/{folder}")
            for where, what in blocking(parsed(path))]


def test_what_runs_on_the_loop_calls_nothing_that_blocks():
    assert not [(where, what) for where, what in found() if where not in ELSEWHERE]


def test_no_exception_is_stale():
    assert set(ELSEWHERE) <= {where for where, _ in found()}


@pytest.mark.parametrize("folder", ON_THE_LOOP)
def test_what_runs_on_the_loop_imports_nothing_that_blocks(folder):
    assert not [f"{name(path)}:{line} {module}" for path in modules(f"gateway/{folder}")
                for module, line in imports(parsed(path)) if module in MODULES]


SOURCES = {
    "time.sleep(1)": "time.sleep", "open('x').read()": "open", "Path('x').read_text()": "Path('x').read_text",
    "socket.getaddrinfo('a', 1)": "socket.getaddrinfo", "x = [os.stat(p) for p in ps]": "os.stat",
}


@pytest.mark.parametrize("line", SOURCES)
def test_a_call_that_blocks_is_found_wherever_it_stands(line):
    for text, where in ((line, ""), (f"async def f():\n    if x:\n        {line}", "f"), (f"class A:\n    def g(self):\n        {line}", "A.g")):
        assert (where, SOURCES[line]) in list(blocking(ast.parse(text)))


def test_no_task_waits_in_a_way_that_swallows_its_cancellation():
    """``asyncio.wait_for`` did before Python 3.12, when what it waits for was ready in the same turn; ``asyncio.timeout`` does not."""
    used = [str(file) for file in sorted(Path(gateway.__file__).parent.rglob("*.py"))
            if "cli" not in file.parts and "asyncio.wait_for(" in file.read_text(encoding="utf-8")]
    assert used == []
