"""`import gateway.server` brings in what the request path uses and nothing else."""
import subprocess
import sys

from tests.arch.source import ROOT

# aiohttp and what it brings, the loop, the two JSON libraries. A new row costs every start and every worker's memory.
ALLOWED = frozenset({
    "aiohappyeyeballs", "aiohttp", "aiosignal", "attr", "attrs", "backports", "brotli", "_brotli", "frozenlist", "idna",
    "msgspec", "multidict", "orjson", "propcache", "typing_extensions", "uvloop", "yarl",
})

PROGRAM = """
import sys
before = set(sys.modules)
import gateway.server, gateway.server.compose, gateway.server.listen
ours = {name.partition(".")[0] for name in set(sys.modules) - before}
print("\\n".join(sorted(ours - set(sys.stdlib_module_names) - {"gateway"})))
"""


def test_the_server_loads_only_what_the_request_path_uses():
    result = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {module for module in result.stdout.split() if not module.startswith("__")}
    assert loaded <= ALLOWED
