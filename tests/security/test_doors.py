"""Every path × every credential × where it comes from: what tests/security/promise.py promises, and nothing else."""
import ast
import inspect
import textwrap
import time
from collections import Counter

import pytest

from gateway.admin.sessions import COOKIE
from gateway.core.keys import Former
from gateway.policy import passwords
from gateway.policy.keys import digest
from gateway.server import listen
from tests.arch.source import PACKAGE, modules, name, parsed
from tests.conftest import client_key, provider
from tests.security.promise import KEYED, KINDS, OPENED, Path, paths, promised
from tests.security.stranger import Wire, move_away

GOOD, SCOPED, EXPIRED, REVOKED, ROTATED = (f"gw-{word}-0123456789abcdef" for word in "good scoped expired revoked rotated".split())
ADMIN_KEY, PROVIDER_KEY, PASSWORD = "adm-0123456789abcdef", "sk-provider-0123456789", "correct horse battery"
PATHS = paths()
REFUSED = (401, 403)
ALL_ON = '[mcp]\nenabled = true\n[store]\nurl = "memory:"\n'


@pytest.fixture(scope="session")
def password_hash():
    return passwords.hashed(PASSWORD)


@pytest.fixture
async def keyed(gateway, stack, password_hash):
    """A gateway with keys of all sorts, a password and a key of [admin]; (asks it, credentials as headers by name)."""
    config = (client_key("good", GOOD) + client_key("scoped", SCOPED, mcp_scopes='["read:health"]')
              + client_key("expired", EXPIRED, expires='"2020-01-01"') + '[ollama]\nmode = "key"\n' + ALL_ON
              + f'[admin]\nkey = "{ADMIN_KEY}"\npassword_hash = "{password_hash}"\n'
              + provider("http://127.0.0.1:9/v1", keys=f'["{PROVIDER_KEY}"]'))
    wire = Wire(await gateway(config))
    stack.callback(wire.close)
    office = gateway.listener.office
    admin = [("Authorization", f"Bearer {ADMIN_KEY}")]
    for secret in (REVOKED, ROTATED):
        made = await wire.ask("POST", "/admin/api/keys", admin, b'{"name": "%s"}' % secret[3:9].encode())
        assert made.status == 200, made.body
    await _end_stored_keys(gateway.listener)
    now = gateway.listener.desk.ground.clock.now()
    session, ended = (office.sessions.begin(password_hash, now) for _ in range(2))
    office.sessions.end(ended)

    def cookie(token):
        return [("Cookie", f"{COOKIE}={token}"), ("X-Gateway-Admin", "1")]

    def bearer(secret):
        return [("Authorization", f"Bearer {secret}"), ("X-Gateway-Admin", "1")]
    return wire, {
        "none": [("X-Gateway-Admin", "1")], "wrong": bearer("gw-nobody-0123456789abcdef"), "revoked": bearer(REVOKED),
        "expired": bearer(EXPIRED), "rotated": bearer(ROTATED), "malformed": [("Authorization", GOOD), ("X-Gateway-Admin", "1")],
        "bearer": bearer(GOOD), "x-api-key": [("x-api-key", GOOD), ("X-Gateway-Admin", "1")],
        "x-goog-api-key": [("x-goog-api-key", GOOD), ("X-Gateway-Admin", "1")], "query": [("X-Gateway-Admin", "1")],
        "scoped": bearer(SCOPED), "admin": admin, "admin as x-api-key": [("x-api-key", ADMIN_KEY), ("X-Gateway-Admin", "1")],
        "session": cookie(session), "ended session": cookie(ended), "someone's cookie": cookie("x" * 43),
        "provider key": bearer(PROVIDER_KEY), "password": bearer(PASSWORD), "key's digest": bearer(digest(GOOD)),
    }


async def _end_stored_keys(listener):
    """One key of the store is revoked, the other's secret was rotated away a moment ago."""
    from msgspec.structs import replace

    keys = listener.desk.ground.keys
    rows = {row.name: row for row in keys._rows}
    assert set(rows) == {REVOKED[3:9], ROTATED[3:9]}
    keys.stock([replace(rows[REVOKED[3:9]], sha256=digest(REVOKED), revoked=True),
                replace(rows[ROTATED[3:9]], former=(Former(digest(ROTATED), time.time() - 1),))])


def test_every_path_is_promised_something():
    assert [path.name for path in PATHS if not path.kind] == [], "say in tests/security/promise.py who may use it"
    assert {path.kind for path in PATHS} == {*KINDS.values(), "operator", "entrance", "page", "mcp"}
    assert [what for what, n in Counter(path.name for path in PATHS).items() if n > 1] == []
    assert len(PATHS) > 90


def test_no_other_path_leads_anywhere():
    """Whatever answers, beside the three tables, is what says that there is nothing."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(listen.dispatcher)))
    assert {ast.unparse(node.value.func) for node in ast.walk(tree) if isinstance(node, ast.Await)} == {
        "door.handler", "admin.answer", "mcp.answer", "misfit"}


def judge(path: Path, wanted: int | str, heard, what: str, secrets=()):
    """One answer against the promise; "" or what is wrong with it."""
    told = f"{what}: {path.name} -> {heard.status} {heard.body[:120]!r}, promised {wanted}"
    if wanted == "in":
        # What a door says of a request that it let in may be a failure, but none of credentials.
        return told if heard.status in REFUSED or heard.status >= 500 and heard.status not in (501, 502, 503) else ""
    if heard.status != wanted or any(secret in heard.body for secret in secrets):
        return told
    if wanted == 401 and heard.headers.get("www-authenticate") != "Bearer":
        return f"{told}: no WWW-Authenticate"
    return "" if SHAPES[path.shape](heard.json, wanted) and heard.headers.get("x-request-id") else f"{told}: not in its own format"


def _openai(doc, status):
    kinds = {401: "authentication_error", 403: "permission_error"}
    return set(doc) == {"error"} and doc["error"]["message"] and doc["error"]["type"] == kinds[status]


SHAPES = {
    "openai-chat": _openai, "openai-responses": _openai,
    "admin": lambda doc, status: bool(doc["error"]["message"] and doc["error"]["code"]),
    "anthropic": lambda doc, status: doc["type"] == "error" and doc["error"]["type"] == {
        401: "authentication_error", 403: "permission_error"}[status] and doc["error"]["message"],
    "gemini": lambda doc, status: doc["error"]["code"] == status and doc["error"]["status"] == {
        401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED"}[status] and doc["error"]["message"],
    "ollama": lambda doc, status: isinstance(doc["error"], str) and doc["error"],
    "mcp": lambda doc, status: doc["jsonrpc"] == "2.0" and doc["error"]["code"] == {401: -32001, 403: -32003}[status],
}


def asked(credential: str, path: Path) -> str:
    return f"{path.path}?key={GOOD}" if credential == "query" else path.path


def shape_as_asked(path: Path, headers) -> Path:
    """Lists of models are told in the language of whoever asks."""
    from msgspec.structs import replace

    names = {name for name, _ in headers}
    return replace(path, shape="gemini") if "x-goog-api-key" in names and path.path.startswith("/v1/models") else path


SECRETS = tuple(secret.encode() for secret in (GOOD, SCOPED, EXPIRED, REVOKED, ROTATED, ADMIN_KEY, PROVIDER_KEY, PASSWORD))


@pytest.mark.parametrize("where", ["here", "another machine", "behind a proxy"])
async def test_with_keys_each_credential_opens_what_is_promised(keyed, monkeypatch, where):
    wire, credentials = keyed
    assert set(credentials) == set(KEYED)
    if where == "another machine":
        wire.close()
        move_away(monkeypatch)
    more = [("X-Forwarded-For", "203.0.113.9"), ("X-Forwarded-Proto", "https")] if where == "behind a proxy" else []
    wrong = []
    for credential, headers in credentials.items():
        for path in PATHS:
            if path.path.endswith("/logout") and credential == "session":
                continue                             # see test_sessions: it works
            heard = await wire.ask(path.method, asked(credential, path), [*headers, *more], b"{}" if path.method != "GET" else b"")
            wanted = promised(credential, path, local=where == "here")
            wrong.append(judge(shape_as_asked(path, headers), wanted, heard, credential, SECRETS))
    assert not (found := [one for one in wrong if one]), "\n".join(found)


@pytest.mark.parametrize("how", [[], [("X-Gateway-Admin", "1"), ("Origin", "https://evil.example")],
                                 [("X-Gateway-Admin", "1"), ("Origin", "null")],
                                 [("X-Gateway-Admin", "1"), ("Sec-Fetch-Site", "cross-site")]])
async def test_a_session_changes_nothing_unless_our_own_page_asked(keyed, how):
    wire, credentials = keyed
    cookie = credentials["session"][:1]
    for path in PATHS:
        if path.kind in ("operator", "entrance") and path.changes:
            heard = await wire.ask(path.method, path.path, [*cookie, *how], b"{}")
            assert heard.status == 403 and heard.json["error"]["code"] in ("header_missing", "origin_not_allowed"), path.name
    assert (await wire.ask("GET", "/admin/api/overview", credentials["session"])).status == 200


WHO = {
    "a program here": [], "another machine": [], "a rebound name": [("Host", "evil.example")],
    "behind a proxy": [("X-Forwarded-For", "203.0.113.9")],
    "behind a proxy, forged": [("X-Forwarded-For", "127.0.0.1, 203.0.113.9")],
    "behind a proxy, by x-real-ip": [("X-Real-IP", "203.0.113.9")],
    "behind a proxy, by forwarded": [("Forwarded", 'for=127.0.0.1, For="[2001:db8::7]:4711";proto=http')],
    "a page elsewhere": [("Origin", "https://evil.example")], "a sandboxed page": [("Origin", "null")],
    "a page of another site": [("Sec-Fetch-Site", "cross-site")],
}


@pytest.mark.parametrize("who", OPENED)
@pytest.mark.parametrize("ollama", ["loopback", "key"])
async def test_without_keys_this_machine_alone_is_let_in(gateway, stack, monkeypatch, who, ollama):
    wire = Wire(await gateway(ALL_ON + f'[ollama]\nmode = "{ollama}"\n' + provider("http://127.0.0.1:9/v1")))
    stack.callback(wire.close)
    if who == "another machine":
        move_away(monkeypatch)
    wrong = []
    for path in PATHS:
        kinds = OPENED[who]
        wanted = kinds.get(path.kind, "in") if not path.changes else kinds.get("changes") or kinds.get(path.kind, "in")
        heard = await wire.ask(path.method, path.path, [("X-Gateway-Admin", "1"), *WHO[who]], b"{}" if path.method != "GET" else b"")
        wrong.append(judge(path, wanted, heard, who))
    assert not (found := [one for one in wrong if one]), "\n".join(found)


def test_secrets_are_compared_in_constant_time():
    """``==`` and ``in`` end at the first difference; hmac.compare_digest and digests do not. In all that hears requests."""
    found = []
    for path in modules():
        if path.relative_to(PACKAGE).parts[0] in ("config", "cli", "jobs") or ".reveal()" not in path.read_text(encoding="utf-8"):
            continue
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Compare) and any(
                    isinstance(part, ast.Attribute) and part.attr == "reveal" for part in ast.walk(node)):
                found.append(f"{name(path)}:{node.lineno}: {ast.unparse(node)}")
    assert found == []
