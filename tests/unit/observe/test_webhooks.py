"""Addresses are told of what they want to hear, signed, again when they did not listen, and never in a request's way."""
import asyncio
import hashlib
import hmac
import json

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.config.load import loads
from gateway.config.problems import ConfigError
from gateway.config.schema import Webhook
from gateway.core.secret import Secret
from gateway.mock import script as say
from gateway.observe.webhooks import MAX_FAILURES, MAX_WAITING, PAUSES_S, REST_S, Line
from gateway.routing.breaker import Breaker
from gateway.routing.cooldown import Cooldown
from gateway.server import compose
from gateway.upstream.poster import Poster
from tests.conftest import client_key, provider
from tests.talk import ASK, ask

SECRET = "whsec-test"


class Listener:
    """An address; ``answers`` are its statuses, the last one for ever."""

    def __init__(self):
        self.heard, self.answers, self.news = [], [200], asyncio.Event()

    async def take(self, http):
        self.heard.append((dict(http.headers), await http.read()))
        self.news.set()
        status = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return web.Response(status=status, headers={"Location": "/elsewhere"} if status == 302 else None)

    @property
    def events(self):
        return [json.loads(body)["event"] for _, body in self.heard]

    async def until(self, n):
        async with asyncio.timeout(10):
            while len(self.heard) < n:
                self.news.clear()
                await self.news.wait()
        return [json.loads(body) for _, body in self.heard]


@pytest.fixture
async def listener(stack):
    made = Listener()
    app = web.Application()
    app.router.add_post("/{tail:.*}", made.take)
    server = TestServer(app)
    await server.start_server()
    stack.push_async_callback(server.close)
    made.url = f"http://127.0.0.1:{server.port}/hook"
    return made


def hooks(listener, **more):
    rows = {"url": f'"{listener.url}"', "secret": f'"{SECRET}"', "allow_private": "true", **more}
    return "[[webhooks]]\n" + "".join(f"{name} = {value}\n" for name, value in rows.items())


@pytest.fixture
def line(stack, listener):
    """One address by itself; its pauses pass at once and are noted."""
    def made(**more):
        made.paused, made.counts, poster = [], {"sent": 0, "failed": 0, "dropped": 0}, Poster()

        async def pause(seconds):
            made.paused.append(seconds)

        stack.push_async_callback(poster.close)
        found = Line(Webhook(url=Secret(listener.url), allow_private=True, **more), poster, made.counts, 0, pause)
        stack.push_async_callback(found.close)
        return found
    return made


async def settled(line, made, n):
    async with asyncio.timeout(10):
        while made.counts["sent"] + made.counts["failed"] < n:
            await asyncio.sleep(0.005)


async def test_a_failed_request_is_told_and_signed(gateway, upstream, listener):
    up = await upstream(say.error(500, "boom sk-up-1 boom"))
    url = await gateway(client_key() + provider(up) + hooks(listener, events='["request.failed"]'))
    await ask(url)
    (told,) = await listener.until(1)
    assert told["event"] == "request.failed" and told["data"]["model"] == "m" and told["data"]["error"]
    assert told["data"]["attempts"] == [{"target": "up/m", "error": "server_error", "status": 500}]
    headers, body = listener.heard[0]
    right = hmac.new(SECRET.encode(), f"{headers['X-Gateway-Timestamp']}.".encode() + body, hashlib.sha256).hexdigest()
    assert headers["X-Gateway-Signature"] == f"sha256={right}" and headers["X-Gateway-Event"] == "request.failed"
    assert b"sk-up-1" not in body and b"hi" not in json.dumps(told["data"]["message"]).encode()


async def test_only_what_is_wanted_is_told_and_no_success(gateway, upstream, listener):
    up = await upstream([say.reply("hello"), say.error(500)])
    url = await gateway(client_key() + provider(up) + hooks(listener, events='["budget.reached"]'))
    await ask(url)
    await ask(url)
    assert gateway.listener.parts.webhooks.counts == {"sent": 0, "failed": 0, "dropped": 0} and not listener.heard


def resting(parts, desk, seconds, kind="auth"):
    """The only provider rests for so long from now on."""
    now = parts.clock.now()
    parts.health.rest(desk.ground.catalog.targets[0].provider_key, Cooldown(now + seconds, kind, "authoritative", now))


async def test_a_provider_that_goes_down_and_comes_back_is_told_once_each(gateway, listener):
    await gateway(client_key() + provider("http://127.0.0.1:9/v1") + hooks(listener, events='["provider.down", "provider.recovered"]'))
    parts, desk = gateway.listener.parts, gateway.listener.desk
    look = parts.webhooks.notices.look
    for seconds in (5, 60, 60, 5, 0, 0, 60):             # too short to be news, down, still, nearly back, back, still, down again
        resting(parts, desk, seconds)
        look(desk.ground)
    told = [(each["event"], each["data"]) for each in await listener.until(3)]
    assert told == [("provider.down", {"provider": "up", "reason": "auth"}), ("provider.recovered", {"provider": "up", "was": "auth"}),
                    ("provider.down", {"provider": "up", "reason": "auth"})]


async def test_an_open_breaker_is_down_and_a_half_open_one_not_yet_back(gateway, listener):
    await gateway(client_key() + provider("http://127.0.0.1:9/v1") + hooks(listener, events='["provider.down"]'))
    parts, desk = gateway.listener.parts, gateway.listener.desk
    breaker = Breaker()
    parts.health.breakers.put("up", breaker)
    breaker.until = parts.clock.now() + 60
    parts.webhooks.notices.look(desk.ground)
    breaker.until = parts.clock.now()
    parts.webhooks.notices.look(desk.ground)
    assert (await listener.until(1))[0]["data"] == {"provider": "up", "reason": "breaker"} and parts.webhooks.notices._down


async def test_budgets_are_told_at_most_and_at_all_of_them_once(gateway, upstream, listener):
    priced = '[{id = "m", price = {input = 0.0, output = 1000.0}, max_output = 10}]'
    up = await upstream(say.body_of(json.dumps({
        "id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 40, "total_tokens": 41}}).encode()))
    url = await gateway(client_key(budget_usd_day="0.1") + provider(up, models=priced) + hooks(listener, events='["budget.reached"]'))
    for _ in range(5):
        await ask(url)
    told = [each["data"] for each in await listener.until(3)]
    assert [(each.get("share"), each["refused"]) for each in told] == [(0.8, False), (1.0, False), (None, True)]
    assert told[0]["period"] == "day" and told[0]["limit_usd"] == 0.1 and told[0]["spent_usd"] == pytest.approx(0.08)


async def test_what_its_sender_got_wrong_is_no_news_nor_is_a_request_larger_than_any_budget(gateway, upstream, listener):
    up = await upstream(say.body_of(b'{"error": {"message": "temperature: must be at most 2", "type": "invalid_request_error"}}', 400))
    priced = '[{id = "m", price = {input = 0.0, output = 1000.0}, max_output = 1000}]'
    url = await gateway(client_key(budget_usd_day="0.1") + provider(up, models=priced) + hooks(listener))
    assert (await ask(url, {**ASK, "max_tokens": 10})).status == 400 and len(up.requests) == 1
    assert (await ask(url, {**ASK, "max_tokens": 900})).status == 402 and len(up.requests) == 1
    await gateway.listener.parts.webhooks.close()
    assert not listener.events


async def test_who_does_not_listen_is_told_again_with_growing_pauses(line, listener):
    listener.answers = [500, 429, 200]
    one = line()
    one.put("test", "evt_1", b"{}")
    await settled(one, line, 1)
    assert line.counts["sent"] == 1 and line.paused == list(PAUSES_S[:2]) and one.failures == 0


@pytest.mark.parametrize("status", [302, 400, 410])
async def test_an_answer_that_will_not_change_is_final_and_redirects_are_not_followed(line, listener, status):
    listener.answers = [status]
    one = line()
    one.put("test", "evt_1", b"{}")
    await settled(one, line, 1)
    assert line.counts["failed"] == 1 and line.paused == [] and len(listener.heard) == 1


async def test_ten_failures_in_a_row_and_it_rests(line, listener):
    listener.answers = [500]
    one = line()
    for n in range(2):
        one.put("test", f"evt_{n}", b"{}")
    await settled(one, line, 2)
    assert one.failures == MAX_FAILURES and line.paused.count(REST_S) == 1 and line.counts["failed"] == 2
    listener.answers = [200]
    one.put("test", "evt_3", b"{}")
    await settled(one, line, 3)
    assert one.failures == 0 and line.counts["sent"] == 1


async def test_what_has_no_room_is_dropped_and_counted(line):
    one = line()
    for n in range(MAX_WAITING + 7):
        one.put("test", f"evt_{n}", b"{}")
    assert line.counts["dropped"] == 7


async def test_what_waits_is_sent_before_the_gateway_stops(gateway, upstream, listener):
    up = await upstream(say.error(500))
    url = await gateway(client_key() + provider(up) + hooks(listener))
    await ask(url)
    await gateway.listener.parts.webhooks.close()
    assert "request.failed" in listener.events


async def test_a_reload_keeps_what_waits_and_follows_the_new_list(gateway, upstream, listener):
    up = await upstream(say.error(500))
    config = client_key() + provider(up)
    url = await gateway(config + hooks(listener, events='["request.failed"]'))
    desk, parts = gateway.listener.desk, gateway.listener.parts
    (before,) = parts.webhooks._lines
    compose.rebuild(desk, parts)
    assert parts.webhooks._lines == [before]
    desk.ground = compose.ground(loads(config), parts)
    await ask(url)
    assert not parts.webhooks._lines and not listener.heard


@pytest.mark.parametrize("url", ["http://127.0.0.1/x", "http://10.0.0.1/", "http://169.254.169.254/latest", "http://localhost:1/", "ftp://h/x"])
def test_private_addresses_need_the_operator_s_word(url):
    with pytest.raises(ConfigError, match=r"webhooks\[0\].url"):
        loads(f'[[webhooks]]\nurl = "{url}"\n')


async def test_a_name_that_leads_to_a_private_address_is_refused_when_it_is_used(listener):
    from gateway.upstream.reach import Refused
    poster = Poster()
    with pytest.raises(Refused):
        await poster.post(listener.url, b"{}", {}, private=False, timeout_s=1)
    assert not listener.heard
    await poster.close()


def test_without_a_secret_there_is_a_warning():
    found = loads('[[webhooks]]\nurl = "https://hooks.example/x"\n')
    assert any(path == "webhooks[0].secret" for path, _ in found.warnings)
