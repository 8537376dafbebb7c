"""One refresh for all who wait, before the token expires; what was rotated is stored before it is used; who is revoked stays out."""
import asyncio
import json

import pytest

from gateway.core.errors import GatewayError
from gateway.core.secret import Secret
from gateway.providers.oauth import OAuth
from gateway.store.vault import FileVault, MemoryVault
from gateway.upstream import tokens as under_test
from gateway.upstream.tokens import FAILURES, REST_S, Holder, Tokens

HOLDER = Holder("p/oauth", OAuth("https://t.example/token", "id", Secret(""), Secret("r0")))


class FakeClock:
    def __init__(self):
        self.time = 1000.0

    def now(self):
        return self.time

    wall = now


class Answer:
    complete = True

    def __init__(self, status, body):
        self.status, self.headers, self._body = status, {}, body

    async def read(self, limit):
        return self._body

    def close(self):
        pass


class Endpoint:
    """A transport whose answers are scripted; the last one stays."""

    def __init__(self, *answers):
        self.answers, self.asked, self.gate = list(answers), [], None

    async def send(self, out):
        self.asked.append(out.body.decode())
        if self.gate is not None:
            await self.gate.wait()
        await asyncio.sleep(0)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return Answer(answer[0], json.dumps(answer[1]).encode())


def token(name="t1", life=3600, **more):
    return 200, {"access_token": name, "expires_in": life, **more}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(under_test, "RETRIES_S", (0.0, 0.0001, 0.0001))


def make(*answers, vault=None):
    endpoint, clock = Endpoint(*answers), FakeClock()
    return Tokens(endpoint, clock, vault or MemoryVault()), endpoint, clock


async def test_fifty_who_wait_share_one_refresh():
    tokens, endpoint, _ = make(token())
    assert set(await asyncio.gather(*(tokens.get(HOLDER) for _ in range(50)))) == {"t1"}
    assert len(endpoint.asked) == 1


async def test_who_leaves_takes_nobody_along():
    tokens, endpoint, _ = make(token())
    endpoint.gate = asyncio.Event()
    first, second = asyncio.create_task(tokens.get(HOLDER)), asyncio.create_task(tokens.get(HOLDER))
    await asyncio.sleep(0.01)
    first.cancel()
    endpoint.gate.set()
    assert await second == "t1" and len(endpoint.asked) == 1


async def test_a_token_is_replaced_before_it_expires_and_nobody_waits_for_that():
    tokens, endpoint, clock = make(token("old"), token("new"))
    assert await tokens.get(HOLDER) == "old"
    clock.time += 3600 - 299
    assert await tokens.get(HOLDER) == "old"
    await asyncio.sleep(0.01)
    assert await tokens.get(HOLDER) == "new" and len(endpoint.asked) == 2


async def test_an_old_token_is_used_to_its_end_when_no_new_one_can_be_had():
    tokens, _, clock = make(token("old"), GatewayError("transport", "refused"))
    await tokens.get(HOLDER)
    clock.time += 3500
    assert await tokens.get(HOLDER) == "old"
    await asyncio.sleep(0.02)
    clock.time += 200
    with pytest.raises(GatewayError, match="refused"):
        await tokens.get(HOLDER)


async def test_what_was_rotated_is_on_the_disk_before_it_is_used(tmp_path):
    vault = FileVault(tmp_path / "tokens.json")
    tokens, endpoint, clock = make(token("t1", 60, refresh_token="r1"), token("t2", 60), vault=vault)
    assert await tokens.get(HOLDER) == "t1"
    assert list((await vault.load()).values()) == ["r1"]
    assert (tmp_path / "tokens.json").stat().st_mode & 0o777 == 0o600
    clock.time += 61
    await tokens.get(HOLDER)
    assert "refresh_token=r0" in endpoint.asked[0] and "refresh_token=r1" in endpoint.asked[1]
    again, later, _ = make(token(), vault=vault)
    await again.get(HOLDER)
    assert "refresh_token=r1" in later.asked[0]


async def test_another_token_in_the_configuration_begins_anew(tmp_path):
    vault = FileVault(tmp_path / "tokens.json")
    await make(token(refresh_token="r1"), vault=vault)[0].get(HOLDER)
    tokens, endpoint, _ = make(token(), vault=vault)
    await tokens.get(Holder("p/oauth", OAuth("https://t.example/token", "id", Secret(""), Secret("written anew"))))
    assert "refresh_token=written+anew" in endpoint.asked[0]


async def test_a_disk_that_fails_is_said_and_stops_nobody(caplog):
    class Full(MemoryVault):
        async def keep(self, name, value):
            raise OSError(28, "No space left on device")
    tokens, endpoint, clock = make(token("t1", 60, refresh_token="r1"), token("t2", 60), vault=Full())
    assert await tokens.get(HOLDER) == "t1"
    assert "No space left" in caplog.text and "r1" not in caplog.text
    clock.time += 61
    await tokens.get(HOLDER)
    assert "refresh_token=r1" in endpoint.asked[1]


async def test_a_revoked_one_is_asked_for_once_and_says_what_to_do():
    tokens, endpoint, _ = make((400, {"error": "invalid_grant"}))
    for _ in range(3):
        with pytest.raises(GatewayError, match="sign in again") as told:
            await tokens.get(HOLDER)
        assert told.value.kind == "auth"
    assert len(endpoint.asked) == 1


async def test_who_fails_again_and_again_is_left_alone_for_a_while():
    tokens, endpoint, clock = make((503, {}))
    for _ in range(FAILURES):
        with pytest.raises(GatewayError, match="503"):
            await tokens.get(HOLDER)
    asked = len(endpoint.asked)
    assert asked == FAILURES * 3
    with pytest.raises(GatewayError, match="left alone"):
        await tokens.get(HOLDER)
    assert len(endpoint.asked) == asked
    clock.time += REST_S + 1
    endpoint.answers = [token()]
    assert await tokens.get(HOLDER) == "t1"


async def test_a_token_that_was_refused_is_replaced():
    tokens, endpoint, _ = make(token("t1"), token("t2"))
    await tokens.get(HOLDER)
    assert tokens.refused(HOLDER, "t1") and await tokens.get(HOLDER) == "t2"
    assert tokens.refused(HOLDER, "t1") and await tokens.get(HOLDER) == "t2"      # told late by somebody who still had the old one
    assert len(endpoint.asked) == 2
