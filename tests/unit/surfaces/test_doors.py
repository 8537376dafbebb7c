"""Paths, methods, headers and status lines: what every client meets before any model does."""
import gzip
import json
import threading
import zlib

import aiohttp
import brotli
import pytest

from gateway.mock import script as say
from tests.conftest import KEY, client_key, provider
from tests.surfaces import OPEN_ALL, SURFACES
from tests.talk import ASK, AUTH, ask


@pytest.fixture
def door(gateway, upstream):
    """A gateway with one upstream that answers; ``door.up`` is it."""
    async def start(config: str = "", answer=None, key: bool = True):
        start.up = await upstream(answer or say.reply("hello"))
        return await gateway((client_key() if key else "") + provider(start.up, models='["m", {id = "org/deep/x"}]') + config)
    return start


async def test_every_answer_carries_a_request_id(door):
    base_url = await door()
    made = await ask(base_url)
    assert made.headers["X-Request-ID"] == made.headers["request-id"] and made.headers["X-Request-ID"]
    kept = await ask(base_url, headers={**AUTH, "X-Request-ID": "mine-1"})
    assert kept.headers["X-Request-ID"] == kept.headers["request-id"] == "mine-1"
    odd = await ask(base_url, headers={**AUTH, "X-Request-ID": "a b\tc"})
    assert odd.headers["X-Request-ID"] != "a b\tc"
    wrong = await ask(base_url, headers={"Authorization": "Bearer no"})
    assert wrong.status == 401 and wrong.headers["X-Request-ID"]


async def test_a_success_names_who_answered_and_nothing_of_the_upstream_leaks(door):
    base_url = await door(answer=say.body_of(json.dumps({
        "id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]}).encode(),
        headers={**say.JSON, "Set-Cookie": "a=b", "X-Internal": "secret", "Server": "nginx"}))
    got = await ask(base_url)
    assert got.headers["X-Routed-Via"] == "up/m"
    assert "X-Internal" not in got.headers and "Set-Cookie" not in got.headers and got.headers["Server"] == "gateway"


async def test_client_credentials_and_private_headers_never_go_upstream(door):
    base_url = await door()
    await ask(base_url, headers={**AUTH, "x-api-key": KEY, "Cookie": "a=b", "X-Forwarded-For": "1.2.3.4",
                                 "OpenAI-Beta": "x=v1", "X-Secret": "s"})
    sent = door.up.requests[0].headers
    assert sent["authorization"] == "Bearer sk-up-1" and sent["openai-beta"] == "x=v1"
    assert not {"cookie", "x-api-key", "x-forwarded-for", "x-secret"} & set(sent)
    assert KEY not in json.dumps(dict(sent))


@pytest.mark.parametrize("headers", [{"Authorization": f"Bearer {KEY}"}, {"Authorization": f"bearer {KEY}"},
                                     {"x-api-key": KEY}, {"x-goog-api-key": KEY}])
async def test_a_client_key_comes_in_any_of_three_headers(door, headers):
    assert (await ask(await door(), headers=headers)).status == 200


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong-key-abc"}, {"Authorization": KEY},
                                     {"Authorization": "Basic Zm9vOmJhcg=="}, {"x-api-key": ""}])
async def test_anything_else_is_401_and_echoes_nothing(door, headers):
    got = await ask(await door(), headers=headers)
    assert got.status == 401 and got.headers["WWW-Authenticate"] == "Bearer"
    assert got.error["type"] == "authentication_error" and "wrong-key-abc" not in got.body.decode()


async def test_query_keys_count_nowhere_here(door):
    assert (await ask(await door(), path=f"/v1/chat/completions?key={KEY}", headers={})).status == 401


@pytest.mark.parametrize("method, path, status", [
    ("GET", "/v1/chat/completions", 405), ("POST", "/v1/models", 405), ("GET", "/nothing", 404), ("POST", "/v1/nothing", 404),
    ("DELETE", "/v1/models", 405), ("GET", "/v1/models/", 404), ("POST", "/", 404)])
async def test_wrong_doors_say_so_in_the_error_shape(door, method, path, status):
    got = await ask(await door(), method=method, path=path)
    assert got.status == status and got.error["message"]
    assert ("Allow" in got.headers) == (status == 405)


async def test_models_are_listed_as_far_as_the_key_may_see(door):
    base_url = await door('[[auth.keys]]\nname = "small"\nkey = "gw-small"\nmodels = ["m"]\n')
    full = await ask(base_url, method="GET", path="/v1/models")
    assert [row["id"] for row in full.json["data"]] == ["auto", "fusion", "m", "org/deep/x"]
    assert full.json["object"] == "list" and all(row["object"] == "model" for row in full.json["data"])
    small = await ask(base_url, method="GET", path="/v1/models", headers={"x-api-key": "gw-small"})
    assert [row["id"] for row in small.json["data"]] == ["m"]
    assert (await ask(base_url, {**ASK, "model": "org/deep/x"}, headers={"x-api-key": "gw-small"})).status == 403


@pytest.mark.parametrize("name, status", [("m", 200), ("org/deep/x", 200), ("up/org/deep/x", 200), ("org%2Fdeep%2Fx", 200),
                                          ("auto", 200), ("nope", 404)])
async def test_one_model_by_any_of_its_names(door, name, status):
    got = await ask(await door(), method="GET", path=f"/v1/models/{name}")
    assert got.status == status
    if status == 404:
        assert got.error["code"] == "model_not_found"


async def test_an_unknown_model_is_404_without_an_upstream_call(door):
    got = await ask(await door(), {**ASK, "model": "other/m"})
    assert got.status == 404 and got.error["code"] == "model_not_found" and got.error["param"] == "model"
    assert not door.up.requests


async def test_cors_is_answered_for_allowed_origins_and_on_errors_too(door):
    base_url = await door('[server]\ncors_allow_origins = ["https://app.example"]\n')
    origin = {"Origin": "https://app.example"}
    for headers in ({**AUTH, **origin}, origin):
        got = await ask(base_url, headers=headers)
        assert got.headers["Access-Control-Allow-Origin"] == "https://app.example" and got.headers["Vary"] == "Origin"
        assert "X-Routed-Via" in got.headers["Access-Control-Expose-Headers"]
    other = await ask(base_url, headers={**AUTH, "Origin": "https://evil.example"})
    assert "Access-Control-Allow-Origin" not in other.headers
    async with aiohttp.ClientSession() as session, session.options(base_url + "/v1/chat/completions", headers={
            **origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,x-foo"}) as got:
        assert got.status == 204 and got.headers["Access-Control-Allow-Headers"] == "authorization,x-foo"
        assert "POST" in got.headers["Access-Control-Allow-Methods"]


ENCODED = {"gzip": gzip.compress, "br": brotli.compress, "deflate": zlib.compress}


@pytest.mark.parametrize("coding", ENCODED)
async def test_compressed_bodies_are_understood(door, coding):
    body = ENCODED[coding](json.dumps(ASK).encode())
    got = await ask(await door(), raw=body, headers={**AUTH, "Content-Encoding": coding})
    assert (got.status, door.up.requests[0].json()["messages"]) == ((200, ASK["messages"]) if coding != "deflate" else
                                                                    (got.status, ASK["messages"]))


async def test_zstd_bodies_are_understood(door):
    from backports import zstd
    got = await ask(await door(), raw=zstd.compress(json.dumps(ASK).encode()), headers={**AUTH, "Content-Encoding": "zstd"})
    assert got.status == 200


async def test_bodies_are_bounded_before_and_after_decoding(door):
    base_url = await door("[server]\nmax_body_bytes = 10000\n")
    big = json.dumps({**ASK, "messages": [{"role": "user", "content": "x" * 20000}]}).encode()
    for raw, headers in ((big, {}), (gzip.compress(big), {"Content-Encoding": "gzip"})):
        got = await ask(base_url, raw=raw, headers={**AUTH, **headers})
        assert got.status == 413 and got.error["type"] == "invalid_request_error"
    assert (await ask(base_url, raw=b"x", headers={**AUTH, "Content-Encoding": "lzma"})).status == 415
    assert not door.up.requests


async def test_limits_of_a_client_key_are_kept_and_told(door):
    base_url = await door('[[auth.keys]]\nname = "two"\nkey = "gw-two"\nrpm = 2\n')
    first = await ask(base_url, headers={"x-api-key": "gw-two"})
    assert first.headers["x-ratelimit-limit-requests"] == "2" and first.headers["x-ratelimit-remaining-requests"] == "1"
    await ask(base_url, headers={"x-api-key": "gw-two"})
    third = await ask(base_url, headers={"x-api-key": "gw-two"})
    assert third.status == 429 and third.error["type"] == "rate_limit_error"
    assert int(third.headers["Retry-After"]) >= 1 and third.headers["x-ratelimit-remaining-requests"] == "0"
    assert len(door.up.requests) == 2


async def test_load_above_max_inflight_is_shed(gateway, upstream):
    import asyncio
    up = await upstream(say.reply("x").later(0.4))
    base_url = await gateway(client_key() + provider(up) + "[limits]\nmax_inflight = 1\n")
    one, two = await asyncio.gather(ask(base_url), ask(base_url))
    assert sorted([one.status, two.status]) == [200, 503]
    assert "Retry-After" in (one if one.status == 503 else two).headers


async def test_open_mode_serves_programs_and_refuses_pages(door):
    base_url = await door(key=False)
    assert (await ask(base_url, headers={})).status == 200
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "evil.example"},
                    {"Content-Type": "text/plain"}):
        got = await ask(base_url, headers=headers)
        assert got.status in (403, 415) and got.error["message"]
    assert len(door.up.requests) == 1


async def test_liveness_is_open_and_readiness_says_why_not(door, gateway):
    base_url = await door()
    live = await ask(base_url, method="GET", path="/livez", headers={})
    assert live.status == 200 and live.json["status"] == "ok" and live.json["version"]
    assert (await ask(base_url, method="GET", path="/readyz", headers={})).json["status"] == "ok"
    gateway.listener.parts.inflight.draining = True
    got = await ask(base_url, method="GET", path="/readyz", headers={})
    assert (got.status, got.json["reason"]) == (503, "draining")
    assert (await ask(base_url)).status == 200, "a kept connection may ask once more"
    gateway.listener.parts.inflight.closed = True
    assert (await ask(base_url)).status == 503


async def test_head_of_a_get_door_has_no_body(door):
    async with aiohttp.ClientSession() as session, session.head((await door()) + "/livez") as got:
        assert got.status == 200 and await got.read() == b""


async def test_legacy_completions_are_served_by_a_chat_model(door):
    got = await ask(await door(answer=say.stream("return ", "a+b")), {"model": "m", "prompt": "def f(a,b):", "stream": True},
                    path="/v1/completions")
    assert got.status == 200 and got.done == 1
    assert "".join(f["choices"][0]["text"] for f in got.frames if f["choices"]) == "return a+b"
    assert all(f["object"] == "text_completion" for f in got.frames)


async def test_compressed_bodies_are_opened_by_threads_of_their_own(door, monkeypatch):
    from gateway.pipeline import deliver
    seen = []
    real = deliver.opened
    monkeypatch.setattr(deliver, "opened", lambda *given: (seen.append(threading.current_thread().name), real(*given))[1])
    base_url = await door()
    words = " ".join(f"{i * 7919 % 100_003}" for i in range(20_000))
    body = {**ASK, "messages": [{"role": "user", "content": words}]}
    packed = gzip.compress(json.dumps(body).encode())
    got = await ask(base_url, raw=packed, headers={**AUTH, "Content-Encoding": "gzip"})
    assert got.status == 200 and len(packed) > deliver.THREAD_BYTES
    assert seen and all(name.startswith("gateway-open") for name in seen)


@pytest.mark.parametrize("surface", SURFACES.values(), ids=SURFACES.keys())
async def test_a_body_that_is_not_utf8_is_the_caller_s_fault_and_goes_nowhere(gateway, upstream, surface):
    up = await upstream(say.reply())
    base_url = await gateway(client_key() + provider(up) + OPEN_ALL)
    got = await ask(base_url, path=surface.path.replace("{model}", "m"), raw=b'{"model": "m", "\xff": []}')
    assert got.status == 400 and "UTF-8" in surface.said(got, False).error and not up.requests


async def test_names_of_headers_that_a_page_asks_for_are_not_repeated_when_they_are_none(door):
    base_url = await door('[server]\ncors_allow_origins = ["*"]\n')
    for wanted, told in (("x-one, x-two", "x-one, x-two"), ("a(b)", "authorization, content-type")):
        got = await ask(base_url, method="OPTIONS", headers={"Origin": "https://a.example", "Access-Control-Request-Headers": wanted})
        assert got.headers["Access-Control-Allow-Headers"] == told


@pytest.mark.parametrize("path, told", [
    ("/v1/nothing", lambda said: said["error"]["code"] == "not_found"),
    ("/v1/messages/batches", lambda said: said["type"] == "error" and said["error"]["type"] == "not_found_error"),
    ("/v1beta/cachedContents", lambda said: said["error"]["status"] == "NOT_FOUND"),
    ("/api/pull", lambda said: said["error"].startswith("There is no POST /api/pull"))])
async def test_a_path_that_leads_nowhere_is_told_in_the_words_of_its_api(door, path, told):
    got = await ask(await door(), {}, path=path)
    assert got.status == 404 and told(got.json)
