"""What the operator's API tells and does, asked over a real socket."""
import asyncio
import json
import logging

import pytest

from gateway.admin.routes import ROUTES
from gateway.config.load import load
from gateway.mock import script as say
from gateway.server.reload import Reloader
from tests.conftest import client_key, provider
from tests.talk import ask


async def test_the_description_names_every_route(operator):
    page = await operator("")
    told = (await page.get("/openapi.json")).json
    assert told["openapi"].startswith("3.1")
    named = {(method.upper(), path.removeprefix("/admin/api")) for path, methods in told["paths"].items() for method in methods}
    assert named == {(route.method, route.path) for route in ROUTES}
    span = told["paths"]["/admin/api/overview"]["get"]["parameters"][0]
    assert (span["name"], span["schema"]["maximum"]) == ("minutes", 360)


async def test_an_overview_counts_what_went_through(operator, upstream):
    good, bad = await upstream(say.stream("hello")), await upstream(say.error(500))
    page = await operator(client_key() + provider(bad, "bad") + provider(good, "good"))
    for _ in range(3):
        assert (await ask(page.base_url, stream=True)).status == 200
    told = (await page.get("/overview?minutes=15")).json
    assert (told["requests"], told["outcomes"], told["success"]) == (3, {"ok": 3}, 1.0)
    assert told["failovers"] >= 1 and told["errors"].get("server_error", 0) >= 1
    assert told["top"][0]["target"] == "good/m" and told["top"][0]["output_tokens"] > 0
    assert 0 < told["latency"]["p50"] <= told["latency"]["p99"] and told["ttft"]["p50"] > 0
    assert len(told["curves"]["at"]) == 15 and sum(told["curves"]["requests"]) == 3
    assert len((await page.get("/overview?minutes=360")).json["curves"]["at"]) == 180


@pytest.mark.parametrize("query", ["minutes=0", "minutes=x", "minutes=5&minutes=6", "other=1"])
async def test_a_query_that_is_wrong_is_refused(operator, query):
    page = await operator("")
    answer = await page.get(f"/overview?{query}")
    assert answer.status == 400 and answer.json["error"]["message"]


async def test_what_is_under_way_is_shown_with_its_attempts(operator, upstream):
    bad, slow = await upstream(say.error(500)), await upstream(say.hang())
    page = await operator(client_key() + provider(bad, "bad") + provider(slow, "slow"))
    running = asyncio.create_task(ask(page.base_url, stream=True))
    await slow.until(lambda: slow.busy == 1)
    told = (await page.get("/live")).json
    assert told["count"] == 1
    [shown] = told["requests"]
    assert (shown["model"], shown["key"], shown["stream"]) == ("m", "test", True)
    first, second = shown["attempts"]
    assert (first["target"], first["error"], second["target"], second["end_ms"]) == ("bad/m", "server_error", "slow/m", None)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    async with asyncio.timeout(5):
        while (await page.get("/live")).json["count"]:
            await asyncio.sleep(0.01)


async def test_a_provider_that_rests_is_shown_and_can_be_cleared(operator, upstream):
    up = await upstream([say.error(429, headers={"Retry-After": "600"}), say.stream("again")])
    page = await operator(client_key() + provider(up, "up"))
    assert (await ask(page.base_url)).status == 429
    told = (await page.get("/providers")).json
    [row] = told["providers"]
    assert (row["id"], row["state"], row["cooldowns"]) == ("up", "partly resting", 1)
    assert sum(bad for _, bad in row["strip"]) == 1
    [cooldown] = told["cooldowns"]
    assert (cooldown["provider"], cooldown["model"], cooldown["account"], cooldown["kind"]) == ("up", "m", "key1", "rate_limited")
    assert 590 < cooldown["remaining_s"] <= 600
    assert (await page.post("/cooldowns/clear", {"provider": "up", "account": "key9"})).status == 404
    assert (await page.post("/cooldowns/clear", {"provider": "up", "account": "key1"})).json == {"ended": 1}
    assert (await page.get("/providers")).json["cooldowns"] == []
    assert (await ask(page.base_url, stream=True)).text == "again"
    [change] = (await page.get("/audit")).json["changes"]
    assert (change["action"], change["subject"], change["who"]) == ("cooldown.clear", "up/key1", "loopback")


async def test_one_provider_is_shown_with_its_models_and_tested(operator, upstream):
    up = await upstream(say.stream("hello"))
    page = await operator(client_key() + provider(up, "up"))
    await ask(page.base_url, stream=True)
    told = (await page.get("/providers/up")).json
    assert told["models"][0]["id"] == "m" and told["models"][0]["measured"]["success"] == 1.0
    assert told["provider"]["address"].startswith("http://127.0.0.1:")
    assert (await page.get("/providers/nobody")).status == 404
    [verdict] = (await page.post("/providers/up/test")).json["verdicts"]
    assert verdict["account"] == "key1"


async def test_no_key_is_ever_shown(operator, upstream):
    up = await upstream(say.stream("hello"))
    page = await operator(client_key() + provider(up, "up", keys='["sk-very-secret-1234567"]'))
    await ask(page.base_url)
    for route in ROUTES:
        if route.method == "GET" and "{" not in route.path and not route.stream and route.path != "/explain":
            body = (await page.get(route.path)).body
            assert b"very-secret" not in body and b"gw-test-key" not in body, route.path


async def test_routing_is_explained_with_the_cooldowns_of_the_moment(operator, upstream):
    a, b = await upstream(say.error(500)), await upstream(say.stream("b"))
    page = await operator(client_key() + provider(a, "a") + provider(b, "b"))
    await ask(page.base_url, stream=True)
    told = (await page.get("/explain?model=m")).json
    assert told["kind"] == "model"
    by_label = {place["label"]: place for place in told["places"]}
    assert by_label["b/m"]["position"] == 1
    assert by_label["a/m"]["skip"] == "cooldown" and by_label["a/m"]["retry_s"] > 0
    assert (await page.get("/explain?model=nobody-has-this")).status == 404
    assert {"auto", "m", "a/m"} <= set((await page.get("/names")).json["names"])


async def test_the_playground_answers_like_the_surface_without_a_client_key(operator, upstream):
    up = await upstream(say.stream("hello"))
    page = await operator(client_key(models='["other"]') + provider(up, "up"))
    answer = await page.post("/playground", {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]})
    assert answer.status == 200 and b"hello" in answer.body and answer.headers["X-Routed-Via"] == "up/m"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    refused = await page.post("/playground", {"model": "nobody", "messages": []})
    assert refused.status in (400, 404)


async def test_a_trial_asks_everybody_once(operator, upstream):
    good, bad = await upstream(say.reply("Hello there")), await upstream(say.error(401))
    page = await operator(client_key() + provider(good, "good") + provider(bad, "bad"))
    told = (await page.post("/trial", {"targets": ["good/m", "bad/m", "none"]})).json["outcomes"]
    assert [(one["ok"], one["error"]) for one in told] == [(True, None), (False, "auth"), (False, "no_model")]
    assert told[0]["text"] == "Hello there" and told[0]["routed"] == "good/m"
    assert told[1]["attempts"][0]["error"] == "auth"


async def test_a_configuration_is_judged_and_compared_without_being_put_in_force(operator, upstream):
    up = await upstream(say.stream("hello"))
    page = await operator(client_key() + provider(up, "up"))
    text = client_key() + provider(up, "up", keys='["sk-another-secret-99"]') + "[routing]\nmax_attempts = 3\n"
    told = (await page.post("/config/validate", {"text": text})).json
    assert told["ok"] and {edit["path"] for edit in told["changes"]} == {"providers[0].api_keys[0].key", "routing.max_attempts"}
    assert "another-secret" not in json.dumps(told)
    wrong = (await page.post("/config/validate", {"text": "[server]\nprot = 1\n"})).json
    assert not wrong["ok"] and wrong["problems"][0]["path"] == "server.prot"


async def test_the_configuration_is_shown_compared_and_reloaded(operator, upstream, gateway, tmp_path):
    up = await upstream(say.stream("hello"))
    page = await operator(client_key() + provider(up, "up"))
    assert (await page.post("/reload")).code == "no_configuration"
    file, office = tmp_path / "gateway.toml", gateway.listener.office
    office.read = lambda: load(file, {})
    office.reload = Reloader(gateway.listener, office.read, file).reload
    shown = (await page.get("/config")).json
    assert shown["source"] == str(file) and "sk-up-1" not in shown["text"] and 'id = "up"' in shown["text"]
    assert {"path": "providers[0].api_keys[0].key", "value": "***"} in shown["settings"]
    file.write_text(client_key() + provider(up, "new"))
    assert [edit["path"] for edit in (await page.get("/config/diff")).json["changes"]] == ["providers[0].id"]
    assert (await page.post("/reload")).json == {"ok": True, "problems": []}
    assert (await page.get("/providers")).json["providers"][0]["id"] == "new"
    file.write_text("nonsense")
    assert not (await page.post("/reload")).json["ok"]
    actions = [(change["action"], change["ok"]) for change in (await page.get("/audit")).json["changes"]]
    assert actions == [("reload", False), ("reload", True)]


async def test_log_lines_are_shown_masked_and_followed(operator, upstream):
    up = await upstream(say.stream("hello"))
    page = await operator(client_key() + provider(up, "up", keys='["sk-very-secret-1234567"]'))
    logging.getLogger("gateway.test").warning("the key sk-very-secret-1234567 is in a line")
    await ask(page.base_url)
    told = (await page.get("/logs")).json
    assert told["last"] == len(told["lines"]) or told["lines"]
    texts = [line["text"] for line in told["lines"]]
    assert any("gateway.test" in text and "very-secret" not in text for text in texts)
    assert any("outcome=ok" in text for text in texts)
    async with page.session.get(f"{page.base_url}/admin/api/logs/tail?after={told['last']}") as tail:
        assert tail.headers["Content-Type"].startswith("text/event-stream")
        logging.getLogger("gateway.test").warning("one more")
        async with asyncio.timeout(5):
            while b"one more" not in (line := await tail.content.readline()):
                pass
        assert json.loads(line.removeprefix(b"data: "))["n"] > told["last"]


async def test_bodies_that_are_wrong_are_refused_by_name(operator):
    page = await operator("")
    for body, status in ((b"{", 400), (b'{"provider": 5}', 400), (b"[]", 400), (b'{"provider": "x", "more": 1}', 400), (b"\xff", 400)):
        answer = await page.ask("POST", "/cooldowns/clear", data=body, headers={"X-Gateway-Admin": "1", "Content-Type": "application/json"})
        assert answer.status == status, body
    answer = await page.ask("POST", "/cooldowns/clear", data=b"provider=x", headers={"X-Gateway-Admin": "1"})
    assert answer.status == 415
    answer = await page.ask("POST", "/cooldowns/clear", data=b"x" * (1 << 20) + b"x",
                            headers={"X-Gateway-Admin": "1", "Content-Type": "application/json"})
    assert answer.status == 413


async def test_what_is_not_there_is_said(operator):
    page = await operator("")
    assert (await page.get("/nothing")).status == 404
    wrong = await page.ask("DELETE", "/overview")
    assert (wrong.status, wrong.headers["Allow"]) == (405, "GET")
    assert (await page.get("/admin/page/../door.py")).status == 404
    assert (await page.get("/admin/page/%2e%2e/door.py")).status == 404


async def test_the_page_comes_with_a_strict_policy(operator):
    page = await operator("")
    answer = await page.get("/admin")
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = answer.headers["Content-Security-Policy"]
    assert "script-src 'self'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff" and answer.headers["X-Request-ID"]
    again = await page.get("/admin", headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status == 304 and not again.body
    assert (await page.ask("HEAD", "/admin/page/app.js")).status == 200


async def test_a_key_is_made_used_rotated_and_revoked(operator, upstream):
    up = await upstream(say.stream("hello"))
    page = await operator(client_key() + provider(up, "up"))
    made = (await page.post("/keys", {"name": "phone", "models": ["m"], "rpm": 100, "expires": "2099-01-31"})).json
    assert made["key"]["state"] == "active" and made["key"]["expires"].startswith("2099-01-31") and made["secret"].startswith("gw-")
    bearer = {"Authorization": f"Bearer {made['secret']}"}
    assert (await ask(page.base_url, headers=bearer)).status == 200
    listed = (await page.get("/keys")).json
    assert [(key["name"], key["source"]) for key in listed["keys"]] == [("test", "config"), ("phone", "store")]
    assert made["secret"] not in json.dumps(listed) and not listed["open"]
    changed = await page.ask("PATCH", f"/keys/{made['key']['id']}", json={"models": ["other"], "note": "lost"})
    assert (changed.json["models"], changed.json["rpm"], changed.json["note"]) == (["other"], 100, "lost")
    assert (await ask(page.base_url, headers=bearer)).status == 403
    rotated = (await page.post(f"/keys/{made['key']['id']}/rotate")).json
    assert (await ask(page.base_url, headers=bearer)).status == 401
    assert (await page.post("/keys/phone/revoke")).json["state"] == "revoked"
    assert (await ask(page.base_url, headers={"Authorization": f"Bearer {rotated['secret']}"})).status == 401
    told = (await page.get("/audit")).json["changes"]
    assert [change["action"] for change in told] == ["key.revoke", "key.rotate", "key.change", "key.create"]
    assert made["secret"] not in json.dumps(told) and rotated["secret"] not in json.dumps(told)


@pytest.mark.parametrize("body", [
    {}, {"name": ""}, {"name": "x", "models": []}, {"name": "x", "rpm": -1}, {"name": "x", "expires": "soon"}, {"name": "test"},
    {"name": "x", "group": "nobody"}, {"name": "x", "budget_usd_day": -1}, {"name": "x", "expires": "0001-01-01T00:00:00-23:00"},
])
async def test_a_key_that_makes_no_sense_is_refused(operator, body):
    page = await operator(client_key())
    answer = await page.post("/keys", body)
    if body.get("expires", "").startswith("0001"):
        assert answer.json["key"]["state"] == "expired"
    else:
        assert answer.status == 400 and answer.json["error"]["message"]


async def test_groups_are_made_and_removed_when_nobody_belongs_to_them(operator):
    page = await operator(client_key())
    assert (await page.ask("PUT", "/groups/team", json={"budget_usd_month": 50})).status == 200
    assert (await page.post("/keys", {"name": "phone", "group": "team"})).status == 200
    [group] = (await page.get("/keys")).json["groups"]
    assert (group["name"], group["budget_usd_month"]) == ("team", 50)
    assert (await page.ask("DELETE", "/groups/team")).status == 400
    await page.post("/keys/phone/revoke")
    assert (await page.ask("DELETE", "/groups/team")).status == 200
    assert (await page.ask("DELETE", "/groups/team")).status == 404


async def test_a_combo_is_made_ordered_tested_and_deleted(operator, upstream):
    up = await upstream(say.reply("OK"))
    page = await operator(client_key() + provider(up, "up") + '[[combos]]\nname = "filed"\ntargets = ["up/m"]\n')
    made = await page.ask("PUT", "/combos/mine", json={"strategy": "weighted", "targets": [{"target": "up/m", "weight": 2}]})
    assert (made.json["name"], made.json["source"], made.json["targets"]) == ("mine", "store", ["up/m"])
    assert (await ask(page.base_url, {"model": "mine", "messages": [{"role": "user", "content": "hi"}]})).status == 200
    await page.ask("PUT", "/combos/second", json={"targets": ["up/m"]})
    assert (await page.post("/combos/order", {"names": ["second", "mine"]})).json == {"names": ["second", "mine"]}
    told = (await page.get("/combos")).json
    assert [combo["name"] for combo in told["combos"]] == ["filed", "second", "mine"] and "weighted" in told["strategies"]
    [probed] = (await page.post("/combos/mine/test")).json["probed"]
    assert probed["ok"] and probed["target"] == "up/m"
    assert (await page.get("/explain?model=combo/mine")).json["strategy"] == "weighted"
    assert (await page.ask("DELETE", "/combos/mine")).status == 200
    assert (await page.ask("DELETE", "/combos/filed")).status == 404
    assert [change["action"] for change in (await page.get("/audit")).json["changes"]] == [
        "combo.delete", "combo.test", "combo.order", "combo.save", "combo.save"]


@pytest.mark.parametrize(("name", "table", "path"), [
    ("x", {"targets": ["nobody/m"]}, "targets[0]"), ("x", {"targets": []}, "targets"), ("x", {"strategy": "best", "targets": ["up/m"]}, "strategy"),
    ("x", {"name": "y", "targets": ["up/m"]}, "name"), ("filed", {"targets": ["up/m"]}, "name"), ("x", {"targets": ["up/m"], "speed": 1}, "speed"),
])
async def test_a_combo_that_makes_no_sense_is_refused_by_its_path(operator, upstream, name, table, path):
    up = await upstream(say.reply("OK"))
    page = await operator(client_key() + provider(up, "up") + '[[combos]]\nname = "filed"\ntargets = ["up/m"]\n')
    answer = await page.ask("PUT", f"/combos/{name}", json=table)
    assert (answer.status, answer.json["error"]["param"]) == (400, path)


async def recorded(page, n):
    """The records, once so many are there: they are written some 30 ms after the end of a request."""
    async with asyncio.timeout(5):
        while len((found := (await page.get("/requests")).json)["requests"]) < n:
            await asyncio.sleep(0.02)
    return found["requests"]


async def test_requests_are_listed_and_one_is_told_with_its_attempts(operator, upstream):
    good, bad = await upstream(say.stream("hello")), await upstream(say.error(500))
    page = await operator('[store]\nurl = "memory:"\n' + client_key() + provider(bad, "bad") + provider(good, "good"))
    await ask(page.base_url, stream=True)
    await ask(page.base_url, {"model": "nobody", "messages": [{"role": "user", "content": "hi"}]})
    refused, answered = await recorded(page, 2)
    assert (refused["outcome"], refused["asked"], answered["routed"], answered["attempts"]) == ("refused", "nobody", "good/m", 2)
    story = (await page.get(f"/requests/{answered['id']}")).json
    assert [(hop["provider"], hop["error"]) for hop in story["attempts"]] == [("bad", "server_error"), ("good", "")]
    assert (await page.get(f"/requests/{answered['request']}")).json["request"]["id"] == answered["id"]
    assert [row["id"] for row in (await page.get("/requests?outcome=ok&provider=good")).json["requests"]] == [answered["id"]]
    first = (await page.get("/requests?limit=1")).json
    assert (await page.get(f"/requests?limit=1&cursor={first['next']}")).json["requests"][0]["id"] == answered["id"]
    assert (await page.get("/requests?cursor=x")).status == 400
    assert (await page.get("/requests/nobody")).status == 404


@pytest.mark.parametrize("store", ["memory:", "sqlite:gateway.db"])
async def test_usage_is_summed_by_whatever_one_asks(operator, upstream, store, tmp_path):
    up = await upstream(say.stream("hello"))
    url = store.replace("gateway.db", str(tmp_path / "gateway.db"))
    page = await operator(f'[store]\nurl = "{url}"\n' + client_key() + provider(up, "up"))
    for _ in range(3):
        await ask(page.base_url, stream=True)
    await recorded(page, 3)
    for by, name in (("model", "m"), ("provider", "up"), ("key", "test")):
        told = (await page.get(f"/usage?by={by}")).json
        assert (told["total"]["requests"], told["rows"][0][by], told["rows"][0]["requests"]) == (3, name, 3)
        assert sum(row["requests"] for row in told["largest"][name]) == 3 == sum(row["requests"] for row in told["over_time"])
    assert {row["measure"] for row in told["timings"]} >= {"latency", "ttft"}
    assert (await page.get("/usage?hours=8000")).json["step"] == "day"


async def test_what_the_cache_saves_is_told_and_it_can_be_emptied(operator, upstream):
    up = await upstream(say.reply("hello"))
    page = await operator("[cache]\nenabled = true\n" + client_key() + provider(up, "up"))
    body = {"model": "m", "temperature": 0, "messages": [{"role": "user", "content": "hi"}]}
    for _ in range(2):
        await ask(page.base_url, body)
    told = (await page.get("/savings")).json
    assert (told["cache"]["always"], told["cache"]["hits"], told["cache"]["entries"]) == (True, 1, 1)
    assert (await page.post("/cache/clear")).json == {"cleared": 1}
    assert (await page.get("/savings")).json["cache"]["entries"] == 0


async def test_compression_is_summed_up_and_tried_out(operator):
    page = await operator('[compression]\nmode = "standard"\n')
    counts = (await page.get("/savings")).json["compression"]["counts"]
    assert counts["requests"] == 0 and counts["engines"]["dedup"]["discarded"] == {}
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "One.   \n\n\n\nTwo."},
                                       {"role": "user", "content": "hi"}]}
    told = (await page.post("/compression/preview", {"body": body, "mode": "lossless"})).json
    assert told["stages"][1]["engine"] == "lite" and "One.\\n\\nTwo." in told["body"]
    assert (await page.post("/compression/preview", {"body": body, "mode": "off"})).status == 400


async def test_a_tail_has_a_head_of_its_own_and_not_everybody_may_follow(operator):
    page = await operator("")
    async with asyncio.timeout(5):
        assert (await page.ask("HEAD", "/logs/tail")).headers["Content-Type"].startswith("text/event-stream")
    tails = [await page.session.get(f"{page.base_url}/admin/api/logs/tail") for _ in range(8)]
    refused = await page.get("/logs/tail")
    assert refused.status == 503 and refused.headers["Retry-After"]
    for tail in tails:
        tail.close()
    async with asyncio.timeout(5):
        while (answer := await page.session.get(f"{page.base_url}/admin/api/logs/tail")).status != 200:
            await asyncio.sleep(0.05)
    answer.close()
