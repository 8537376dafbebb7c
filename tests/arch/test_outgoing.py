"""Every place that opens a connection is known, with what keeps it from going where it must not. A new one is a decision, made here.

``public``: public addresses only, checked when written or asked and of each address that a name resolves to. ``provider``: anywhere
but where clouds hand this machine its credentials (gateway/upstream/metadata.py), checked of each socket; ``dialled``: on such a socket. ``operator``: an address
that only the operator's own file or command line can name. ``inside``: this machine's own sockets and files.
"""
import ast

import pytest

from tests.arch.source import ROOT, functions, imports, modules, name, parsed

OPENS = frozenset({
    "ClientSession", "TCPConnector", "UnixConnector", "ProxyConnector", "from_url", "open_connection", "open_unix_connection",
    "create_connection", "create_unix_connection", "create_datagram_endpoint", "start_connection", "sock_connect", "urlopen", "urlretrieve",
    "build_opener", "HTTPConnection", "HTTPSConnection", "AsyncClient", "PoolManager", "create_pool", "OTLPSpanExporter",
    "OTLPMetricExporter", "SMTP", "FTP", "insecure_channel", "secure_channel"})
CALLED = frozenset({"asyncpg.connect", "aiosqlite.connect", "sqlite3.connect", "way.connect"})      # connect() of others is ours
LIBRARIES = frozenset({"httpx", "httpx2", "requests", "urllib3", "websockets", "websocket", "grpc", "boto3", "botocore", "smtplib", "ftplib",
                       "paramiko", "pycurl", "niquests", "aiohttp_socks", "python_socks", "openai", "anthropic"})

PLACES = {
    "gateway/upstream/reach.py:Fetcher._client": "public",                       # pictures and files of requests; redirects by hand
    "gateway/upstream/poster.py:Poster._session": "public",                      # webhooks, the judge; allow_private: as provider
    "gateway/upstream/aiohttp_transport.py:AiohttpTransport._pool": "provider",
    "gateway/upstream/h1/dial.py:Dialer._socket": "provider",                    # base_url, lists, token_url, proxies
    "gateway/upstream/h1/dial.py:Dialer._straight": "dialled",
    "gateway/upstream/h1/dial.py:Dialer._through": "dialled",
    "gateway/upstream/h1/tunnel.py:opened": "dialled",
    "gateway/observe/otlp.py:Exporter.__init__": "operator",
    "gateway/observe/otlp.py:Numbers.__init__": "operator",
    "gateway/shared/valkey.py:ValkeyState.open": "operator",
    "gateway/store/postgres.py:connected": "operator",
    "gateway/mcp/stdio.py:there": "operator",
    "gateway/mock/load.py:_connect": "operator",
    "gateway/cli/clients/asking.py:alive": "operator",
    "gateway/cli/doctor.py:connect": "operator",
    "gateway/cli/machine.py:clock": "operator",
    "gateway/cli/mcp.py:answers": "operator",
    "gateway/cli/models.py:ask": "operator",
    "gateway/cli/remote.py:asked": "operator",
    "gateway/server/systemd.py:notify": "inside",
    "gateway/shared/local.py:LocalHub.open": "inside",
    "gateway/store/copying.py:_opened": "inside",
    "gateway/store/lookup.py:looking": "inside",
    "gateway/store/memory_ledger.py:opened": "inside",
    "gateway/store/sqlite.py:Reader._connect": "inside",
    "gateway/store/sqlite_file.py:SqliteFile.connect": "inside",
}
# Where the guard itself stands, by what it is handed.
GUARDS = {"public": ("resolver", "socket_factory"), "provider": ("socket_factory",)}
MAKERS = frozenset({"TCPConnector", "start_connection"})


def opening(tree):
    """(function, node) of whatever opens a connection, be it called there or handed on."""
    for where, node in [("", tree), *functions(tree)]:
        for inner in own(node):
            if isinstance(inner, (ast.Attribute, ast.Name)):
                text = ast.unparse(inner)
                if text.rpartition(".")[2] in OPENS or text in CALLED:
                    yield where, inner


def own(node):
    """What stands in this function and in none inside it, annotations left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.arguments)) or (isinstance(node, ast.AnnAssign) and child is node.annotation) \
                or child is getattr(node, "returns", None):
            continue
        yield child
        yield from own(child)


def found():
    return {f"{name(path)}:{where}" for path in modules() for where, _ in opening(parsed(path)) if where}


def test_every_connection_is_opened_where_it_is_known_to_be():
    assert found() == set(PLACES)


@pytest.mark.parametrize("place", [place for place, kind in PLACES.items() if kind in GUARDS])
def test_the_guard_stands_where_connections_are_made(place):
    file, _, function = place.partition(":")
    node = next(node for where, node in functions(parsed(ROOT / file)) if where == function)
    made = [call for call in ast.walk(node) if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in MAKERS]
    assert made
    for call in made:
        handed = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        assert set(GUARDS[PLACES[place]]) <= handed.keys() and handed["socket_factory"] == "metadata.opened"


def test_no_library_opens_connections_unseen():
    users = {name(path) for path in modules() for module, _ in imports(parsed(path)) if module in LIBRARIES}
    assert users == {"gateway/mcp/stdio.py"}


@pytest.mark.parametrize("code", [
    "def f():\n    aiohttp.ClientSession()", "def f():\n    kind = http.client.HTTPSConnection if x else y", "async def f():\n    await loop.create_connection(x)",
    "def f():\n    return getattr(asyncpg.connect, 'x')", "class A:\n    def f(self):\n        urlopen(self.url)"])
def test_a_new_one_is_found(code):
    assert len(list(opening(ast.parse(code)))) == 1


def test_what_is_named_only_is_none():
    assert not list(opening(ast.parse("def f(a: aiohttp.ClientSession) -> TCPConnector:\n    a: ClientSession = b\n    self.connect()")))
