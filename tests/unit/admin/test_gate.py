"""Who may use the operator's side, and was a change meant?"""
import asyncio

import pytest

from gateway.admin import gate
from gateway.admin.sessions import IDLE_S, LIFE_S, MAX_SESSIONS, Sessions, Throttle
from gateway.admin.signin import MAX_CHECKING, MAX_STRANGERS
from tests.conftest import client_key
from tests.security.stranger import Wire
from tests.unit.admin.conftest import ADMIN_KEY, PASSWORD, admin


def locked(password_hash: str, **more: str) -> str:
    return admin(password_hash=f'"{password_hash}"', **more)


async def test_without_a_password_this_machine_is_let_in(operator):
    page = await operator("")
    assert (await page.get("/overview")).status == 200
    assert (await page.get("/session")).json["how"] == "loopback"


@pytest.mark.parametrize("headers", [
    {"Host": "evil.example"}, {"X-Forwarded-For": "203.0.113.9"}, {"Forwarded": "for=203.0.113.9"}, {"X-Real-IP": "203.0.113.9"},
])
async def test_a_rebound_name_or_a_forwarded_stranger_is_not_this_machine(operator, headers):
    page = await operator("")
    assert (await page.get("/overview", headers=headers)).code == "loopback_only"
    assert (await page.get("/admin", headers=headers)).status == 403


async def test_another_machine_is_not_let_in_without_a_password(operator, monkeypatch):
    page = await operator("")
    monkeypatch.setattr(gate, "peer_of", lambda http, trust: "192.0.2.7")
    answer = await page.get("/overview")
    assert (answer.status, answer.code) == (403, "loopback_only")


async def test_a_trusted_proxy_tells_who_asks(operator):
    page = await operator("[server]\ntrust_proxy = true\n")
    assert (await page.get("/overview", headers={"X-Forwarded-For": "127.0.0.1, 203.0.113.9"})).status == 403
    assert (await page.get("/overview", headers={"X-Forwarded-For": "203.0.113.9, 127.0.0.1"})).status == 200
    for header in ("X-Real-IP", "Forwarded", "Via"):
        assert (await page.get("/overview", headers={header: "for=203.0.113.9"})).status == 403, header


async def test_with_a_password_everybody_signs_in(operator, password_hash):
    page = await operator(locked(password_hash))
    assert (await page.get("/overview")).code == "sign_in"
    told = (await page.get("/session")).json
    assert (told["signed_in"], told["how"], told["password"]) == (False, None, True)
    signed = await page.post("/login", {"password": PASSWORD})
    assert signed.status == 200
    cookie = signed.headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/admin"} <= set(cookie.split("; ")) and "Secure" not in cookie
    assert (await page.get("/session")).json["how"] == "session"
    assert (await page.get("/overview")).status == 200
    token = cookie.partition(";")[0].partition("=")[2]
    assert (await page.post("/logout")).status == 200
    assert (await page.get("/overview")).status == 401
    again = await page.get("/overview", headers={"Cookie": f"gateway_admin={token}"})
    assert again.code == "sign_in", "the token itself is no longer good"
    await page.post("/login", {"password": "wrong"})
    await page.post("/login", {"password": PASSWORD})
    changes = [(one["who"], one["action"], one["ok"]) for one in (await page.get("/audit")).json["changes"]]
    assert changes == [("session", "login", True), ("nobody", "login", False), ("session", "logout", True), ("session", "login", True)]


async def test_behind_tls_the_cookie_is_secure(operator, password_hash):
    page = await operator(locked(password_hash) + "[server]\ntrust_proxy = true\n")
    signed = await page.post("/login", {"password": PASSWORD}, headers={"X-Gateway-Admin": "1", "X-Forwarded-Proto": "https"})
    assert "Secure" in signed.headers["Set-Cookie"].split("; ")


async def test_the_key_is_for_scripts(operator, password_hash):
    page = await operator(locked(password_hash, key=f'"{ADMIN_KEY}"'))
    assert (await page.get("/overview", headers={"Authorization": f"Bearer {ADMIN_KEY}"})).status == 200
    assert (await page.get("/overview", headers={"Authorization": "Bearer adm-wrong-wrong-wrong"})).code == "invalid_admin_key"
    assert (await page.post("/logout", headers={"Authorization": f"Bearer {ADMIN_KEY}"})).status == 200


async def test_a_wrong_key_is_refused_even_here(operator):
    page = await operator("")
    assert (await page.get("/overview", headers={"Authorization": "Bearer anything-at-all-here"})).status == 401


async def test_client_keys_open_nothing_here(operator, password_hash):
    page = await operator(client_key() + locked(password_hash))
    assert (await page.get("/overview", headers={"Authorization": "Bearer gw-test-key"})).status == 401


CHANGES = [
    ({}, "header_missing"),
    ({"X-Gateway-Admin": "1", "Origin": "https://evil.example"}, "origin_not_allowed"),
    ({"X-Gateway-Admin": "1", "Origin": "null"}, "origin_not_allowed"),
    ({"X-Gateway-Admin": "1", "Origin": "http://127.0.0.1:1"}, "origin_not_allowed"),
    ({"X-Gateway-Admin": "1", "Sec-Fetch-Site": "cross-site"}, "origin_not_allowed"),
    ({"X-Gateway-Admin": "1", "Sec-Fetch-Site": "same-site"}, "origin_not_allowed"),
]


@pytest.mark.parametrize(("headers", "code"), CHANGES)
async def test_a_change_that_no_page_of_ours_sent_is_refused(operator, headers, code):
    page = await operator("")
    answer = await page.post("/logout", headers=headers)
    assert (answer.status, answer.code) == (403, code)


async def test_signing_in_from_another_page_is_refused_too(operator, password_hash):
    page = await operator(locked(password_hash))
    assert (await page.post("/login", {"password": PASSWORD}, headers={})).code == "header_missing"


async def test_our_own_page_may_change(operator):
    page = await operator("")
    ours = {"X-Gateway-Admin": "1", "Origin": page.base_url, "Sec-Fetch-Site": "same-origin"}
    assert (await page.post("/logout", headers=ours)).status == 200


async def test_other_origins_are_never_allowed_to_read(operator):
    page = await operator('[server]\ncors_allow_origins = ["*"]\n')
    answer = await page.get("/overview", headers={"Origin": "https://evil.example"})
    assert "Access-Control-Allow-Origin" not in answer.headers
    asked = await page.ask("OPTIONS", "/logout", headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"})
    assert "Access-Control-Allow-Origin" not in asked.headers and asked.status == 405


async def test_guessing_becomes_slow_and_the_right_password_waits_as_well(operator, password_hash):
    page = await operator(locked(password_hash))
    for _ in range(5):
        assert (await page.post("/login", {"password": "wrong"})).code == "wrong_password"
    refused = await page.post("/login", {"password": PASSWORD})
    assert refused.status == 429 and int(refused.headers["Retry-After"]) >= 1


async def test_many_guesses_at_once_are_many_guesses(operator, password_hash):
    page = await operator(locked(password_hash))
    answers = await asyncio.gather(*(page.post("/login", {"password": "wrong"}) for _ in range(12)))
    assert sum(answer.status == 401 for answer in answers) <= 5
    assert all(answer.status in (401, 429) for answer in answers)


async def test_strangers_who_guess_all_the_time_do_not_lock_out_who_was_here_before(operator, password_hash, gateway):
    page = await operator(locked(password_hash))
    office = gateway.listener.office
    office.checking = MAX_STRANGERS
    assert (await page.post("/login", {"password": PASSWORD})).code == "rate_limit_exceeded"
    office.checking = 0
    assert (await page.post("/login", {"password": PASSWORD})).status == 200
    office.checking = MAX_STRANGERS
    assert (await page.post("/login", {"password": PASSWORD})).status == 200
    office.checking = MAX_CHECKING
    assert (await page.post("/login", {"password": PASSWORD})).code == "rate_limit_exceeded"


async def test_signing_in_makes_a_token_of_its_own_and_takes_none_from_the_caller(operator, password_hash):
    page = await operator(locked(password_hash))
    planted = {"X-Gateway-Admin": "1", "Cookie": "gateway_admin=planted"}
    signed = await page.post("/login", {"password": PASSWORD}, headers=planted)
    assert signed.status == 200 and "planted" not in signed.headers["Set-Cookie"]
    page.session.cookie_jar.clear()
    assert (await page.get("/overview", headers=planted)).code == "sign_in"


@pytest.mark.parametrize("path", ["/admin/page/../gate.py", "/admin/page/%2e%2e/gate.py", "/admin/page/..%2fgate.py", "/admin/page//etc/passwd",
                                  "/admin/page/%2fetc%2fpasswd", "/admin/page/views/../../door.py", "/admin/page/app.js%00.css"])
async def test_only_files_of_the_page_are_served(operator, path):
    page = await operator("")
    wire = Wire(page.base_url)                       # which sends the path as it is
    heard = await wire.ask("GET", path, [])
    wire.close()
    assert heard.status in (400, 404) and b"import" not in heard.body and b"root:" not in heard.body


async def test_a_form_or_plain_text_changes_nothing(operator):
    """What a page of another origin can send unasked, should it ever get past the header."""
    page = await operator("")
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        heard = await page.ask("POST", "/keys", data=b'{"name": "x"}', headers={"X-Gateway-Admin": "1", "Content-Type": kind})
        assert heard.status == 415
    assert (await page.get("/keys")).json["keys"] == []


async def test_without_a_password_there_is_no_signing_in(operator):
    page = await operator("")
    assert (await page.post("/login", {"password": "x"})).code == "no_password"


async def test_a_switched_off_side_is_not_there(operator):
    page = await operator(admin(enabled="false"))
    assert (await page.get("/overview")).status == 404
    assert (await page.get("/admin")).status == 404


def test_sessions_end_by_idleness_by_age_and_by_a_new_password():
    sessions = Sessions()
    idle, old, changed = (sessions.begin("hash", 0.0) for _ in range(3))
    assert sessions.find(idle, "hash", IDLE_S - 1, active=False) is not None
    assert sessions.find(idle, "hash", IDLE_S) is None
    now = 0.0
    while now < LIFE_S - IDLE_S:
        now += IDLE_S / 2
        assert sessions.find(old, "hash", now) is not None
    assert sessions.find(old, "hash", LIFE_S) is None
    assert sessions.find(changed, "other", 1.0) is None
    assert len(sessions) == 0


def test_sessions_are_bounded_and_the_ones_in_use_stay():
    sessions = Sessions()
    used = sessions.begin("hash", 0.0)
    for n in range(MAX_SESSIONS + 10):
        sessions.begin("hash", float(n))
        assert sessions.find(used, "hash", float(n)) is not None
    assert len(sessions) == MAX_SESSIONS


def test_pauses_double_and_end_with_the_right_password():
    throttle = Throttle()
    waits = []
    for _ in range(9):
        throttle.wrong("peer", 0.0)
        waits.append(throttle.wait_s("peer", 0.0))
    assert waits == [0, 0, 0, 0, 1, 2, 4, 8, 16]
    assert throttle.wait_s("other", 0.0) == 0
    throttle.right("peer")
    assert throttle.wait_s("peer", 0.0) == 0


@pytest.mark.parametrize(("peer", "group"), [
    ("192.0.2.1", "192.0.2.1"), ("2001:db8::1", "2001:db8::/64"), ("2001:db8::ffff:1", "2001:db8::/64"), ("fe80::1%eth0", "fe80::/64"),
    ("::ffff:192.0.2.1", "192.0.2.1"), ("", ""), ("nonsense", "nonsense"),
])
def test_guesses_are_counted_by_customer(peer, group):
    assert gate.group_of(peer) == group


async def test_a_log_that_is_followed_ends_with_the_session(operator, password_hash):
    page = await operator(locked(password_hash))
    await page.post("/login", {"password": PASSWORD})
    async with page.session.get(f"{page.base_url}/admin/api/logs/tail") as tail:
        assert tail.status == 200
        await tail.content.readline()
        assert (await page.post("/logout")).status == 200
        async with asyncio.timeout(5):
            await tail.content.read()


async def test_what_strangers_wrote_reaches_no_browser_as_markup(operator):
    """The page makes no markup of text (tests/arch/test_page.py); and nothing that holds a stranger's words is read as a document."""
    page = await operator(client_key())
    evil = "<img src=x onerror=alert(1)>"
    asked = await page.ask("POST", "/playground", json={"model": evil, "messages": [{"role": "user", "content": evil}]})
    assert asked.status in (400, 404)
    lost = await page.get(f"/{evil}")
    for heard in (asked, lost, await page.get("/audit"), await page.get("/logs"), await page.get("/explain", params={"model": evil})):
        assert heard.headers["Content-Type"].startswith("application/json") and heard.headers["X-Content-Type-Options"] == "nosniff"
    policy = (await page.get("/admin")).headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "script-src 'self';" in policy and "unsafe" not in policy
