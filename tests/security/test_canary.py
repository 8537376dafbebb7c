"""A gateway that holds every kind of secret fails in every way: none of them is seen anywhere."""
import asyncio
import json
import logging
import os
import signal
import socket
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.admin.routes import ROUTES
from gateway.cli import root
from gateway.mcp.table import TOOLS
from gateway.mock.upstream import Upstream
from gateway.policy import passwords
from tests.processes import Served
from tests.security import canaries
from tests.security.canaries import (
    ADDRESS,
    ADMIN,
    CLIENT,
    OWN_PROXY,
    PASSWORD,
    PROVIDER,
    PROXY,
    WAYS,
    echo,
    found,
    sink_files,
)
from tests.security.stranger import Wire
from tests.surfaces import SAY, SURFACES
from tests.unit.mcp.conftest import over_http, said

PROVIDERS = ("echo", "query", "claude", "gemini", "responses", "signs-in", "proxied", "far-proxied", "old-proxied", "socks-proxied",
             "own-proxied", "dead", "told")
KEY = [("Authorization", f"Bearer {CLIENT}")]
NOT_TOLD = (ADDRESS.encode(), b"127.0.0.1:", b"/site-packages/", b"Traceback", b".py\"")     # to clients
OPERATOR = [("Authorization", f"Bearer {ADMIN}")]


class Seen:
    """What came out where. ``add`` keeps only the places in which a secret stands."""

    def __init__(self) -> None:
        self.leaks: dict[str, set[str]] = {}
        self.n = 0
        self.made: set[str] = set()                  # keys that the gateway made while it was looked at

    def add(self, where: str, data: bytes | str) -> None:
        self.n += 1
        raw = data.encode() if isinstance(data, str) else data
        if secrets := found(raw) | {made for made in self.made if made.encode() in raw}:
            self.leaks.setdefault(where, set()).update(secrets)

    def heard(self, where: str, heard, own: str = "") -> None:
        """``own``: what the caller itself had written into its prompt, where an answer may say it again."""
        self.add(where, json.dumps(heard.headers).encode() + heard.body.replace(own.encode() or b"\0", b""))


@pytest.fixture
async def scene(stack, tmp_path, unused_tcp_port):
    """Upstreams that repeat everything, a receiver of spans and events, a proxy that refuses; their ports."""
    up = await stack.enter_async_context(Upstream(echo))
    sink = await stack.enter_async_context(Upstream(canaries.say.reply("ok")))
    proxy = await stack.enter_async_context(Upstream(lambda asked: canaries.say.error(407, canaries.repeated(asked))))
    return {"echo": up.port, "sink": sink.port, "proxy": proxy.port, "dead": unused_tcp_port}, sink


async def command(*words: str) -> str:
    """Everything that a command says, and what it fails with."""
    result = await asyncio.to_thread(CliRunner().invoke, root(), words)
    assert result.exit_code in (0, 1, 2), result.output
    return f"{result.output} {result.exception!r}"


async def tailed(url: str) -> bytes:
    """What ``/admin/api/logs/tail`` says until the gateway ends."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET /admin/api/logs/tail HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n"
                 f"Authorization: Bearer {ADMIN}\r\n\r\n".encode())
    try:
        return await reader.read(-1)
    finally:
        writer.close()


async def fail_everywhere(wire: Wire, seen: Seen, surfaces: tuple[str, ...]) -> None:
    """Each provider and each way on one surface, these surfaces a few ways; requests that are none."""
    async def ask(surface, name: str, way: str, stream: bool) -> None:
        cleared = await wire.ask("POST", "/admin/api/cooldowns/clear", OPERATOR, json.dumps({"provider": name}).encode())
        assert cleared.status == 200
        model = f"{name}/m"
        pasted = f" my key is {CLIENT}" if surface.name != "responses" else ""       # whose conversations are kept, as they were said
        text = json.dumps(surface.body).replace(SAY, f"way={way};{pasted}")
        body = json.loads(text) | ({"stream": stream, "model": model} if surface.flag else {})
        path = (surface.streamed if stream else surface.path).replace("{model}", model)
        heard = await wire.whole("POST", path, KEY, json.dumps(body).encode())
        assert heard.status != 500 and not any(one in heard.body for one in NOT_TOLD), (surface.name, model, way, heard.body)
        seen.heard(f"answer of {surface.name} {model} {way} {stream}", heard, CLIENT)
        statuses.add(heard.status)
    chat, statuses = SURFACES["chat"], set()
    for way in WAYS:
        for stream in (False, True):
            await ask(chat, "echo", way, stream)
            await ask(chat, "told", way, stream)
    for name in PROVIDERS[1:]:
        for way in ("status401", "text") if name != "signs-in" else ("text",):       # which waits for its token each time
            await ask(chat, name, way, way == "text")
    for surface in map(SURFACES.__getitem__, surfaces):
        for way in ("status400", "status500", "late frame", "text"):
            await ask(surface, "echo", way, True)
            await ask(surface, "claude", way, False)
    assert statuses >= {200, 400, 404, 413, 422, 429, 502, 503}, statuses
    for path in ("/v1/embeddings", "/v1/images/generations", "/v1/rerank"):
        seen.heard(path, await wire.whole("POST", path, KEY, b'{"model": "echo-m", "input": "x", "prompt": "x"}'))


async def ask_badly(wire: Wire, seen: Seen) -> None:
    """Requests that carry secrets and are refused, before or behind the parser."""
    for path in (f"/v1beta/models?key={CLIENT}", f"/v1beta/models/nobody?key={CLIENT}", f"/nowhere/{CLIENT}?key={CLIENT}",
                 f"/v1beta/models/x:generateContent?key={CLIENT}", f"/admin/api/overview?key={ADMIN}", f"/v1/models?key={CLIENT}"):
        heard = await wire.whole("GET", path, [])
        if CLIENT not in path.partition("?")[0]:     # what stands in a path was said by the caller, and is told to it alone
            seen.heard(path.replace(CLIENT, "…"), heard)
    for headers in ([("Authorization", f"Bearer {CLIENT}\x01")], [("Authorization", f"Bearer {CLIENT}"), ("X", "y" * 20_000)],
                    [("Authorization", f"Basic {CLIENT}")], [("bad header", CLIENT)], [("Content-Length", CLIENT)]):
        wire.close()
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            seen.heard(f"refusal of {headers[-1][0]}", await wire.whole("GET", "/v1/models", headers))
    wire.close()
    for body in (f'{{"model": "{PROVIDER}", '.encode(), f'{{"model": 1, "x": "{CLIENT}"}}'.encode(), b"\xff" + CLIENT.encode()):
        heard = await wire.whole("POST", "/v1/chat/completions", KEY, body)
        assert heard.status in (400, 404, 422), heard.status
        if b"model" not in body or b"\xff" in body:
            seen.heard("refusal of a body", heard)
    for password in (PASSWORD, "wrong"):
        signed = await wire.whole("POST", "/admin/api/login", [("X-Gateway-Admin", "1")], json.dumps({"password": password}).encode())
        seen.heard("login", signed)


async def look_everywhere(wire: Wire, url: str, seen: Seen) -> None:
    """All that the operator can read, over HTTP and by tools."""
    listed = await wire.whole("GET", "/admin/api/requests?limit=200", OPERATOR)
    ids = [row["id"] for row in listed.json["requests"]]
    assert len(ids) > 50
    for route in ROUTES:
        if route.method != "GET" or route.stream:
            continue
        for name in {"/requests/{id}": ids, "/providers/{id}": PROVIDERS}.get(route.path, [""]):
            heard = await wire.whole("GET", "/admin/api" + route.path.replace("{id}", name), OPERATOR)
            assert heard.status in (200, 400, 404), (route.path, heard.status, heard.body)
            seen.heard(f"GET /admin/api{route.path}", heard)
    await asyncio.gather(*(try_provider(url, name, seen) for name in PROVIDERS))
    trial = {"targets": [f"{name}/m" for name in PROVIDERS], "prompt": "way=status401;"}
    seen.heard("trial", await wire.whole("POST", "/admin/api/trial", OPERATOR, json.dumps(trial).encode()))
    seen.heard("playground", await wire.whole("POST", "/admin/api/playground", OPERATOR, json.dumps(
        {"model": "echo-m", "messages": [{"role": "user", "content": "way=status500;"}]}).encode()))
    for path, headers in (("/metrics", OPERATOR), ("/livez", []), ("/readyz", []), ("/v1/models", KEY), ("/v1/openapi.json", [])):
        seen.heard(path, await wire.whole("GET", path, headers))
    async with over_http(url, ADMIN) as client:
        for tool in TOOLS:
            for given in GIVEN.get(tool.name, ({},)):
                seen.add(f"tool {tool.name}", repr(await client.call_tool(tool.name, given)))
        told = said(await client.call_tool("create_key", {"name": "made"}))
        renewed = said(await client.call_tool("rotate_key", {"key": told["key"]["id"]}))
        seen.made |= {told["secret"], renewed["secret"]}
        assert len(seen.made) == 2
        for name in ("list_keys", "list_audit", "read_logs", "get_config"):
            seen.add(f"tool {name} afterwards", repr(await client.call_tool(name, {})))


async def try_provider(url: str, name: str, seen: Seen) -> None:
    wire = Wire(url)
    seen.heard(f"test of {name}", await wire.whole("POST", f"/admin/api/providers/{name}/test", OPERATOR, b"{}"))
    wire.close()


GIVEN = {"get_provider": tuple({"id": name} for name in ("echo", "signs-in", "proxied")), "test_provider": ({"id": "echo"},),
         "get_provider_metrics": ({"id": "echo"}, {"id": "dead"}),
         "list_requests": ({"limit": 200},), "read_logs": ({"limit": 500},), "list_audit": ({"limit": 500},),
         "route_request": ({"model": "echo-m", "messages": [{"role": "user", "content": "way=status401;"}]},),
         "explain_route": ({},), "simulate_route": ({"model": "m"},)}


async def reload_badly(wire: Wire, served: Served, folder, seen: Seen) -> None:
    """Files that are refused, by the API and by a signal; texts that are looked at."""
    file = folder / "gateway.toml"
    good = file.read_text(encoding="utf-8")
    for bad in (good + f'\n[[providers]]\nid = "x"\nbase_url = "ftp://user:{PROXY}@h/v1"\napi_keys = ["{PROVIDER}", 5]\n',
                good + f'\napi_keys = ["{PROVIDER}"\n', good.replace('id = "dead"', f'id = "{PROVIDER}/x"'),
                good.replace("[mcp]", f'[mcp]\nkey = "{ADMIN}"')):
        put(file, bad)
        seen.heard("reload", await wire.whole("POST", "/admin/api/reload", OPERATOR, b"{}"))
        seen.heard("diff", await wire.whole("GET", "/admin/api/config/diff", OPERATOR))
        seen.heard("config", await wire.whole("GET", "/admin/api/config", OPERATOR))
        seen.heard("validate", await wire.whole("POST", "/admin/api/config/validate", OPERATOR, json.dumps({"text": bad}).encode()))
        served.signal(signal.SIGHUP)
    put(file, good.replace(OWN_PROXY, PROXY))
    seen.heard("diff of a good one", await wire.whole("GET", "/admin/api/config/diff", OPERATOR))
    seen.heard("reload of a good one", await wire.whole("POST", "/admin/api/reload", OPERATOR, b"{}"))
    put(file, good)


def put(file: Path, text: str) -> None:
    """At once, as a signal may have it read at any moment: half a file may be a good one."""
    new = file.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(file)


COMMANDS = (("check",), ("explain", "m"), ("explain", "m", "--json"), ("providers", "--json", "--configured"), ("models", "--json"),
            ("usage", "--json"), ("keys", "list", "--json"), ("doctor", "--json"), ("backup", "copy.db"))


@pytest.mark.parametrize("log_format", ["text", "json"])
async def test_no_secret_is_seen_anywhere(scene, stack, tmp_path, log_format, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in [*os.environ]:
        if name.endswith(("_KEY", "_TOKEN")) or name.startswith(("GATEWAY_CONFIG", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CANARY_VARIABLE", canaries.VARIABLE)
    ports, sink = scene
    seen = Seen()
    served = Served(tmp_path, canaries.config(ports, log_format, passwords.hashed(PASSWORD)), CANARY_VARIABLE=canaries.VARIABLE)
    stack.callback(served.end)
    url = await served.url()
    wire = Wire(url)
    stack.callback(wire.close)
    tail = asyncio.create_task(tailed(url))
    await fail_everywhere(wire, seen, tuple(SURFACES) if log_format == "json" else ("messages",))
    await ask_badly(wire, seen)
    if log_format == "json":
        await look_everywhere(wire, url, seen)
    await reload_badly(wire, served, tmp_path, seen)
    for name, data in sink_files(tmp_path).items():  # as a crash would leave them
        seen.add(f"file {name} while running", data)
    if log_format == "json":
        for words in COMMANDS:
            seen.add(f"gateway {' '.join(words)}", await command(*words))
        lines = await command("tail", "--json", "--once", "-n", "100", "--url", url, "--key", ADMIN)
        assert lines.count("\n") > 50, lines
        seen.add("gateway tail", lines)
    wire.close()
    served.signal(signal.SIGTERM)
    assert await served.ended() == 0, served.said()[-2_000:]
    lines = await asyncio.wait_for(tail, 10)
    assert lines.count(b"\ndata: ") > 20, lines[:2_000]
    seen.add("logs/tail", lines)
    files = sink_files(tmp_path)
    assert len(files["log"]) > 10_000 and any(name.endswith(".db") for name in files), list(files)
    for name, data in files.items():
        seen.add(f"file {name}", data)
    bodies = [asked for asked in sink.requests if asked.path.startswith(("/hook", "/otel"))]
    assert {asked.path[:5] for asked in bodies} == {"/hook", "/otel"}
    for asked in bodies:
        seen.add(f"body for {asked.path[:5]}", asked.body)
    assert seen.n > 100
    assert not seen.leaks, "\n".join(f"{where}: {sorted(secrets)}" for where, secrets in sorted(seen.leaks.items()))


SHORT = f'[[providers]]\nid = "a"\nbase_url = "http://127.0.0.1:9/v1"\nmodels = ["m"]\napi_keys = ["{PROVIDER}"]\n'
WONT_START = {
    "a database with a bad port": f'[store]\nurl = "postgresql://user:{canaries.POSTGRES}@127.0.0.1:x{canaries.POSTGRES}/db"\n',
    "a database of no kind": f'[store]\nurl = "mysql://user:{canaries.POSTGRES}@127.0.0.1/db"\n',
    "a shared state with a bad port": f'[state]\nurl = "redis://user:{canaries.REDIS}@127.0.0.1:port/0"\n',
    "a shared state of no kind": f'[state]\nurl = "http://user:{canaries.REDIS}@127.0.0.1/0"\n',
    "a master key that is too short": f'[store]\nmaster_key = "{canaries.SEALING[:-8]}"\n',
    "a master key of other signs": f'[store]\nmaster_key = "{canaries.SEALING[:-1]}%"\n',
    "an address in use": "[server]\nport = TAKEN\n",
    "a key where a table belongs": f'auth = "{CLIENT}"\n',
    "keys that are none": f'[[auth.keys]]\nname = "x"\nkey = ["{CLIENT}"]\n',
    "a hash that is none": f'[admin]\npassword_hash = "{PASSWORD}"\n',
    "a proxy that is none": SHORT.replace('"a"', '"b"') + f'proxy = "ftp://user:{PROXY}@h:x"\n',
    "a header that is none": SHORT.replace('"a"', '"b"') + f'headers = {{X-A = "{canaries.HEADER}\\n"}}\n',
    "a hook that is none": f'[[webhooks]]\nurl = "gopher://h/{canaries.HOOK_PATH}"\nsecret = "{canaries.HOOK}"\n',
    "no TOML": f'[admin]\nkey = "{ADMIN}\n',
}


@pytest.mark.parametrize("config", WONT_START.values(), ids=WONT_START)
def test_a_gateway_that_does_not_start_tells_no_secret(config, tmp_path, monkeypatch, caplog, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    level = logging.getLogger("gateway").level
    with socket.create_server(("127.0.0.1", 0)) as taken:
        text = config.replace("TAKEN", str(taken.getsockname()[1]))
        text = text + SHORT if "[server]" in text or "auth = " not in text else text
        (tmp_path / "gateway.toml").write_text(text, encoding="utf-8")
        try:
            result = CliRunner().invoke(root(), ["serve"])
        finally:
            logging.getLogger("gateway").setLevel(level)
    shown = f"{result.output} {caplog.text} {''.join(capfd.readouterr())}"
    assert result.exit_code not in (0, None) and isinstance(result.exception, SystemExit), repr(result.exception)
    assert len(result.output) > 20 and not found(shown.encode()), shown
    for name, data in sink_files(tmp_path).items():
        assert not found(data), name


async def test_a_database_that_is_not_there_is_told_without_its_password(stack, tmp_path, unused_tcp_port):
    url = f"postgresql://user:{canaries.POSTGRES}@127.0.0.1:{unused_tcp_port}/db"
    served = Served(tmp_path, f'[log]\nlevel = "debug"\n[server]\nport = 0\n[store]\nurl = "{url}"\n' + SHORT)
    stack.callback(served.end)
    wire = Wire(await served.url())
    for path in ("/readyz", "/admin/api/overview", "/admin/api/keys", "/admin/api/config", "/admin/api/logs"):
        assert not found((await wire.whole("GET", path, [])).body), path
    wire.close()
    served.signal(signal.SIGTERM)
    await served.ended()
    assert len(served.said()) > 20 and not found(served.said().encode()), served.said()


def test_what_a_program_prints_of_a_configuration_holds_no_secret():
    """In a debugger, a traceback with values, a dump."""
    from gateway.config.load import loads
    from gateway.upstream.transport import Outgoing

    snapshot = loads(canaries.config(dict.fromkeys(("echo", "sink", "proxy", "dead"), 9), "text", passwords.hashed(PASSWORD)),
                     {"CANARY_VARIABLE": canaries.VARIABLE})
    config = snapshot.config
    accounts = [account for provider in snapshot.providers for account in provider.accounts]
    shown = [snapshot, config, config.store, config.state, config.otel, *config.providers, *config.webhooks, *config.auth.keys,
             *snapshot.providers, *accounts, *(account.grant for account in accounts),
             Outgoing(method="POST", url=PROVIDER, headers={"a": PROVIDER}, body=None, timeouts=snapshot.providers[0].timeouts)]
    assert len(accounts) > 10 and not found("\n".join(f"{one!r} {one} {one:}" for one in shown).encode())


def test_what_a_provider_is_sent_besides_keys_is_known_as_secret():
    from gateway.config.load import loads

    snapshot = loads('[[providers]]\nid = "a"\nbase_url = "http://127.0.0.1:9/v1"\nmodels = ["m"]\n'
                     'headers = {X-Auth = "Token abc-123-def-456", X-Team = "blue-9-blue-9-blue", X-Site = "${env:SITE}", '
                     'X-Id = "${env:ID}"}\n'
                     'proxy = "http://u:p%40ss-word-1@127.0.0.1:1"\napi_keys = ["sk-0123456789"]\n',
                     {"SITE": "https://a.example/1", "ID": "id-0123456789ab"})
    assert set(snapshot.providers[0].hidden) == {"abc-123-def-456", "id-0123456789ab", "p%40ss-word-1", "p@ss-word-1"}
    assert set(snapshot.providers[0].hidden) <= set(snapshot.secrets) and "blue-9-blue-9-blue" not in snapshot.secrets
