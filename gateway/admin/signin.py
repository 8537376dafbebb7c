"""How does a person sign in and out? A password, checked in a thread at constant cost; wrong guesses wait longer and longer."""
from typing import Final

from gateway.admin import files, gate
from gateway.admin.sessions import COOKIE, LIFE_S
from gateway.admin.visit import Ask, Done, Facts, Visit
from gateway.core.errors import GatewayError
from gateway.policy import passwords

MAX_CHECKING: Final = 8                          # checks that may wait: each takes some 50 ms of the one thread
MAX_STRANGERS: Final = 4                         # of them: many who guess from everywhere keep out nobody who has been here before


class Standing(Facts, frozen=True):
    """Who is asking, and what would help who may not."""
    signed_in: bool
    how: str | None                              # session, key or loopback
    password: bool                               # one is set, so a person can sign in
    version: str
    charts: bool                                 # the page's third-party modules are installed


class Credentials(Ask, frozen=True):
    """What is typed into the form."""
    password: str


async def standing(visit: Visit) -> Standing:
    return Standing(signed_in=visit.how is not None, how=visit.how, password=bool(visit.office.settings.password_hash),
                    version=visit.office.place.version, charts={"vendor/uplot.js", "vendor/uplot.css"} <= set(files.found()))


async def login(visit: Visit) -> Done:
    """Raises unauthorized, limited, or bad_request where no password is set."""
    office, now = visit.office, visit.ground.clock.now()
    stored = office.settings.password_hash.reveal()
    if not stored:
        raise GatewayError("bad_request", "No password is set: set admin.password_hash (`gateway admin-password` makes it).",
                           code="no_password")
    peer = gate.group_of(gate.peer_of(visit.http, visit.ground.snapshot.server.trust_proxy))
    wait_s = office.throttle.wait_s(peer, now)
    room = MAX_CHECKING if office.throttle.knows(peer) else MAX_STRANGERS
    if wait_s > 0 or office.checking >= room:
        raise GatewayError("limited", "Too many wrong passwords; try again later.", retry_after_s=max(wait_s, 1.0))
    office.throttle.wrong(peer, now)                 # before the check: many guesses at once are many guesses
    office.checking += 1
    try:
        right = await office.aside(passwords.matches, visit.body.password, stored)
    finally:
        office.checking -= 1
    if not right:
        office.note("nobody", "login", peer, ok=False)
        raise GatewayError("unauthorized", "This is not the password.", code="wrong_password")
    office.throttle.right(peer)
    token = office.sessions.begin(stored, visit.ground.clock.now())
    visit.cookies.append(cookie(token, int(LIFE_S), secure(visit)))
    office.note("session", "login", peer)
    return Done()


async def logout(visit: Visit) -> Done:
    token = gate.token_of(visit.http.headers)
    if token:
        visit.office.sessions.end(token)
    if visit.how == "session":
        visit.note("logout")
    visit.cookies.append(cookie("", 0, secure(visit)))
    return Done()


def secure(visit: Visit) -> bool:
    """Does the browser speak TLS, to us or to a proxy that we believe?"""
    if visit.ground.snapshot.server.trust_proxy:
        told = visit.http.headers.get("X-Forwarded-Proto")
        if told is not None:
            return told.strip().lower() == "https"
    transport = visit.http.transport
    return transport is not None and transport.get_extra_info("sslcontext") is not None


def cookie(token: str, age_s: int, tls: bool) -> str:
    return f"{COOKIE}={token}; Path=/admin; Max-Age={age_s}; HttpOnly; SameSite=Strict" + ("; Secure" if tls else "")
