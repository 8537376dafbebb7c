"""`import gateway.server` brings in what the request path uses and nothing else."""
import subprocess
import sys

from tests.arch.source import ROOT

# aiohttp and what it brings, the loop, the two JSON libraries. A new row costs every start and every worker's memory.
ALLOWED = frozenset({
    "aiohappyeyeballs", "aiohttp", "aiosignal", "attr", "attrs", "backports", "brotli", "_brotli", "frozenlist", "httptools", "idna",
    "msgspec", "multidict", "orjson", "propcache", "typing_extensions", "uvloop", "yarl",
})

PROGRAM = """
import sys
before = set(sys.modules)
import gateway.server, gateway.server.compose, gateway.server.listen
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print("\\n".join(sorted(name for name in new if "site-packages" in (getattr(sys.modules.get(name), "__file__", "") or ""))))
"""


def test_the_server_loads_only_what_the_request_path_uses():
    result = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(result.stdout.split())
    assert {"aiohttp", "msgspec"} <= loaded <= ALLOWED


PATTERNS = """
import re._compiler as compiler
made, compile = [], compiler.compile
compiler.compile = lambda pattern, flags=0: made.append(pattern) or compile(pattern, flags)
import gateway.server, gateway.server.compose, gateway.server.listen
print(len(made))
"""
MOST_PATTERNS = 450                              # a fifth of a millisecond each: what is seldom looked for is compiled on first use


def test_a_start_does_not_compile_more_patterns():
    result = subprocess.run([sys.executable, "-c", PATTERNS], cwd=ROOT, capture_output=True, text=True, check=True)
    assert 0 < int(result.stdout) <= MOST_PATTERNS
