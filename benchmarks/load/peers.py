"""Which proxies can be measured, how is each started, and how is it asked?"""
import os
import shlex
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gateway.mock.scenarios import FAILOVER, FAILOVERS

HERE = Path(__file__).resolve().parent
OTHERS = HERE / "others"
HOME = Path(os.environ.get("BENCH_HOME", "/tmp/gateway-bench"))      # where others are installed
KEY = os.environ.get("BENCH_KEY", "sk-bench-key")    # what the load sends; a foreign proxy may want its own
MODEL = "bench-model"
PYTHON = sys.executable

PROVIDER = """
[[providers]]
id = "{id}"
wire = "openai-chat"
base_url = "{address}"
api_keys = ["up-key"]
models = {models}
"""
GATEWAY_CONFIG = """
[server]
host = "127.0.0.1"
port = {port}
workers = {workers}

[[auth.keys]]
name = "bench"
key = "{key}"
"""


@dataclass(frozen=True)
class Peer:
    """``command``, ``files`` and ``headers`` may hold {port}, {upstream}, {address} (host and port), {folder}, {key}, {home} and,
    for this project, {config}. ``ready``: a path that answers once it serves; without one, accepting is enough."""
    command: str = ""
    ready: str = ""
    headers: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    install: tuple[str, ...] = ()
    needs: str = ""                              # a file without which it is not installed

    @property
    def ours(self) -> bool:
        """It reads our configuration, so that scenarios can have one of their own."""
        return "{config}" in self.command


BUILT_IN: dict[str, Peer] = {
    "direct": Peer(),
    "splice": Peer(f"{PYTHON} {HERE}/refs/raw_splice.py --port {{port}} --upstream {{upstream}}"),
    "aiohttp": Peer(f"{PYTHON} {HERE}/refs/aiohttp_passthrough.py --port {{port}} --upstream {{upstream}} --key {{key}}"),
    "gateway": Peer(f"{PYTHON} -m gateway serve --config {{config}}", ready="/livez"),
}


def filled(text: str, values: Mapping[str, object]) -> str:
    """Only names that are known: configurations of others are full of braces."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", str(value))
    return text


def other(path: Path) -> Peer:
    """A proxy of somebody else, as a file of others/ describes it."""
    given = tomllib.loads(path.read_text(encoding="utf-8"))
    return Peer(given["command"], given.get("ready", ""), tuple(given.get("headers", ())), given.get("env", {}),
                given.get("files", {}), tuple(given.get("install", ())), given.get("needs", ""))


def known(extra: list[str]) -> dict[str, Peer]:
    """Every peer by name; ``extra`` are NAME=COMMAND of the command line."""
    peers = dict(BUILT_IN)
    for path in sorted(OTHERS.glob("*.toml")):
        peers[path.stem] = other(path)
    for pair in extra:
        name, _, command = pair.partition("=")
        peers[name] = Peer(command, ready="/livez" if "{config}" in command else "")
    return peers


def missing(peer: Peer) -> str | None:
    """What is not there that it needs."""
    needs = filled(peer.needs, {"home": HOME})
    return needs if needs and not Path(needs).exists() else None


def installation(peer: Peer) -> list[list[str]]:
    return [shlex.split(filled(line, {"home": HOME})) for line in peer.install]


def our_config(address: str, port: int, failover: bool, workers: int) -> str:
    """As in service: a client key to check, records, metrics. ``failover``: models that a broken provider is asked for first; each
    is asked for once, since what has failed rests."""
    names = [FAILOVER.format(n) for n in range(FAILOVERS)]
    head = GATEWAY_CONFIG.format(port=port, key=KEY, workers=workers)
    if not failover:
        return head + PROVIDER.format(id="bench", address=f"http://{address}/v1", models=[MODEL])
    return (head + PROVIDER.format(id="down", address=f"http://{address}/broken/v1", models=names)
            + PROVIDER.format(id="bench", address=f"http://{address}/v1", models=[MODEL, *names]))
