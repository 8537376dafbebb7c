"""Every tool, asked through the official SDK of a real gateway over scripted upstreams."""
import asyncio
import json

import pytest

from gateway.mcp.table import BY_NAME
from gateway.mock import script as say
from tests.conftest import client_key, provider
from tests.talk import ask
from tests.unit.mcp.conftest import ADMIN_KEY, ON, over_http, refused, said

STORED = {"combo": "quick", "targets": ["up/m", {"target": "down/m", "weight": 2}], "strategy": "weighted"}
TEXT = '[[providers]]\nid = "x"\nbase_url = "http://127.0.0.1:1/v1"\napi_keys = ["sk-x-1234567890"]\nmodels = ["m"]\n'
PRICED = '[{id = "m", price = {input = 1.0, output = 2.0}, context = 100000, tools = true}]'


class Scene:
    """What came of the calls before."""

    def __init__(self):
        self.secret = self.request = ""


def providers(told, scene):
    assert [(row["id"], row["strip"]) for row in told["providers"]] == [("down", []), ("up", [])] and told["total"] == 2


def provider_metrics(told, scene):
    assert told["provider"]["id"] == "down" and told["attempts"][0]["error"] == "server_error"


def keys_tried(told, scene):
    assert [(verdict["account"], verdict["state"]) for verdict in told["verdicts"]]


def quota(told, scene):
    assert [(row["provider"], row["account"], row["headroom"]) for row in told["accounts"]] == [("up", "key1", 1.0)]


def resting(told, scene):
    assert {row["provider"] for row in told["cooldowns"]} == {"down"} and told["cooldowns"][0]["remaining_s"] > 0


def made(told, scene):
    assert (told["name"], told["source"], told["strategy"], told["targets"]) == ("quick", "store", "weighted", ["up/m", "down/m"])


def edited(told, scene):
    assert (told["strategy"], told["targets"], told["table"]["sticky_limit"]) == ("weighted", ["up/m"], 3)


def listed(told, scene):
    assert [combo["name"] for combo in told["combos"]] == ["best", "quick"]
    assert [row["combo"] for row in told["metrics"]] == ["best", "quick"]


def combo_metrics(told, scene):
    assert [(row["target"], row["input_usd"]) for row in told["targets"]] == [("down/m", None), ("up/m", 1.0)]


def combo_tested(told, scene):
    assert {row["target"]: row["ok"] for row in told["probed"]} == {"down/m": False, "up/m": True}


def simulated(told, scene):
    assert told["kind"] == "combo" and told["worst_cost_usd"] == pytest.approx((1000 * 1.0 + 100 * 2.0) / 1e6)


def story(told, scene):
    assert told["request"]["routed"] == "up/m" and [one["error"] for one in told["attempts"]] == ["server_error", ""]


def best(told, scene):
    assert (told["best"], told["virtual"]) == ("best", "auto/coding")        # the same target answers for both now: equals stay as listed
    assert [(row["combo"], row["first"], row["fits_limits"], row["usable"]) for row in told["ranking"]] == [
        ("best", "up/m", True, 1), ("quick", "up/m", True, 1)]


def trial(told, scene):
    assert [(one["target"], one["ok"], one["text"]) for one in told["outcomes"]] == [("up/m", True, "hello")]


def routed(told, scene):
    assert (told["ok"], told["text"], told["routed"]) == (True, "hello", "up/m")


def models(told, scene):
    assert {row["id"] for row in told["models"]} >= {"best", "m"}


def suited(told, scene):
    assert [row["target"] for row in told["found"]] == ["up/m"]


def prices(told, scene):
    assert [(row["target"], row["price"] and row["price"]["input"]) for row in told["prices"]] == [("down/m", None), ("up/m", 1.0)]


def usage(told, scene):
    assert told["total"]["requests"] >= 1


def costs(told, scene):
    assert told["requests"] >= 1 and told["total_usd"] > 0


def session(told, scene):
    assert told["requests"] >= 1 and told["top"][0]["target"] == "up/m"


def requests(told, scene):
    scene.request = told["requests"][-1]["id"]
    assert told["requests"][-1]["key"] == "test"


def budgets(told, scene):
    assert {(row["of"], row["name"]) for row in told["budgets"]} >= {("key", "test"), ("key", "ci"), ("group", "team")}
    assert next(row for row in told["budgets"] if row["name"] == "ci")["left_usd_month"] == 9.0


def key_made(told, scene):
    scene.secret = told["secret"]
    assert told["secret"].startswith("gw-") and told["key"]["name"] == "ci"


def key_rotated(told, scene):
    assert told["secret"].startswith("gw-") and told["secret"] != scene.secret


def keys(told, scene):
    assert [key["name"] for key in told["keys"]] == ["test", "ci"] and scene.secret not in json.dumps(told)


def config(told, scene):
    assert any(one["path"].startswith("combos") for one in told["settings"]) and "***" in told["text"]


def validated(told, scene):
    assert told["ok"] and told["changes"]


def audited(told, scene):
    assert told["changes"][0]["who"] == "mcp:admin"


def true(told, scene):
    assert told


# In this order: (tool, inputs, what must come of it).
CALLS = [
    ("list_providers", {}, providers), ("get_provider", {"provider": "up"}, true), ("list_cooldowns", {}, resting),
    ("get_provider_metrics", {"provider": "down"}, provider_metrics), ("test_provider", {"provider": "up"}, keys_tried),
    ("check_quota", {"provider": "up"}, quota),
    ("create_combo", STORED, made), ("list_combos", {"metrics": True}, listed), ("get_combo", {"combo": "quick"}, made),
    ("get_combo_metrics", {"combo": "best"}, combo_metrics),
    ("edit_combo", {"combo": "quick", "targets": ["up/m"], "settings": {"sticky_limit": 3}}, edited),
    ("test_combo", {"combo": "best"}, combo_tested),
    ("simulate_route", {"model": "best", "prompt_tokens": 1000, "output_tokens": 100}, simulated),
    ("best_combo_for_task", {"task": "coding", "max_usd_per_million": 10}, best),
    ("set_routing_strategy", {"combo": "quick", "strategy": "priority"}, lambda told, scene: told["strategy"] == "priority" or 1 / 0),
    ("order_combos", {"names": ["quick"]}, lambda told, scene: told["names"] == ["quick"] or 1 / 0),
    ("list_requests", {"limit": 5}, requests), ("explain_route", {"request": "…"}, story),
    ("test_route", {"targets": ["up/m"]}, trial),
    ("route_request", {"model": "up/m", "messages": [{"role": "user", "content": "hi"}], "temperature": 0}, routed),
    ("list_models", {"words": "", "limit": 50}, models), ("find_model", {"tools": True, "min_context": 1000, "by": "price"}, suited),
    ("get_prices", {"model": "m"}, prices),
    ("usage_report", {"by": "provider"}, usage), ("cost_report", {"period": "session"}, costs), ("get_session_snapshot", {}, session),
    ("list_live_requests", {}, lambda told, scene: told["count"] == 0 or 1 / 0),
    ("set_group_budget", {"group": "team", "usd_day": 5}, true),
    ("create_key", {"name": "ci", "models": ["m"], "group": "team", "mcp_scopes": ["read:health"]}, key_made),
    ("set_key_budget", {"key": "ci", "usd_month": 9}, true), ("list_budgets", {}, budgets), ("list_keys", {}, keys),
    ("update_key", {"key": "ci", "rpm": 7}, lambda told, scene: (told["rpm"], told["budget_usd_month"]) == (7, 9.0) or 1 / 0),
    ("rotate_key", {"key": "ci", "grace_s": 60}, key_rotated),
    ("revoke_key", {"key": "ci"}, lambda told, scene: told["state"] == "revoked" or 1 / 0),
    ("cache_stats", {}, true), ("cache_flush", {}, lambda told, scene: told["cleared"] == 0 or 1 / 0),
    ("compression_status", {}, true),
    ("compression_preview", {"body": {"model": "m", "messages": [{"role": "user", "content": "hi"}]}, "mode": "lossless"}, true),
    ("get_config", {"text": True}, config), ("validate_config", {"text": TEXT}, validated),
    ("get_health", {}, lambda told, scene: told["store"]["reachable"] or 1 / 0), ("list_sessions", {}, true),
    ("read_logs", {"limit": 5}, true), ("clear_cooldown", {"provider": "down"}, lambda told, scene: told["ended"] >= 1 or 1 / 0),
    ("delete_combo", {"combo": "quick"}, true), ("list_audit", {"limit": 200}, audited),
]


@pytest.fixture
async def scene(upstream, gateway, tmp_path):
    """A gateway with a target that fails and one that answers, and one request behind it."""
    good, bad = await upstream(say.reply("hello")), await upstream(say.error(500))
    url = await gateway(ON + f'[store]\nurl = "sqlite:{tmp_path}/gateway.db"\n' + client_key() + '[[combos]]\nname = "best"\ntargets = ["down/m", "up/m"]\n'
                         + provider(bad, "down") + provider(good, "up", models=PRICED, keys='["sk-up-1-0123456789"]'))
    assert (await ask(url, {"model": "best", "messages": [{"role": "user", "content": "hi"}]})).status == 200
    ledger = gateway.listener.parts.store.ledger
    async with asyncio.timeout(10):
        while not ledger.committed:
            await asyncio.sleep(0.01)
    return url


async def test_every_tool_does_what_it_says(scene):
    known = Scene()
    left = {"diff_config", "reload_config"}
    assert {name for name, _, _ in CALLS} == set(BY_NAME) - left
    async with over_http(scene) as client:
        for name, given, judged in CALLS:
            given = {"request": known.request} if name == "explain_route" else given
            told = said(await client.call_tool(name, given))
            judged(told, known)
            assert "sk-up-1-0123456789" not in json.dumps(told) and ADMIN_KEY not in json.dumps(told), name
        for name in left:                        # a gateway of a test has no file to read again
            assert "without a configuration" in refused(await client.call_tool(name, {}))


async def test_a_reload_and_what_it_would_change(scene, gateway):
    async def reload():
        return [("providers", "is wrong")]

    office = gateway.listener.office
    office.read, office.reload = lambda: office.ground.snapshot, reload
    async with over_http(scene) as client:
        assert said(await client.call_tool("diff_config", {})) == {"ok": True, "problems": [], "warnings": [], "changes": []}
        assert said(await client.call_tool("reload_config", {}))["problems"] == [{"path": "providers", "message": "is wrong"}]


WRONG = [
    ("list_providers", {"limit": 0}, "limit: Expected `int` >= 1"), ("list_providers", {"nope": 1}, "unknown field `nope`"),
    ("get_provider", {}, "missing required field `provider`"), ("get_provider", {"provider": "gone"}, "no such provider"),
    ("get_combo", {"combo": "gone"}, "There is no combo 'gone'"), ("delete_combo", {"combo": "best"}, "stands in the configuration"),
    ("edit_combo", {"combo": "best", "strategy": "random"}, "stands in the configuration"),
    ("create_combo", {"combo": "best", "targets": ["up/m"]}, "already"),
    ("create_combo", {"combo": "new", "targets": ["up/m"], "settings": {"sticky_limit": -1}}, "sticky_limit: must be"),
    ("create_combo", {"combo": "new", "targets": ["up/m"], "strategy": "best"}, "Invalid enum value 'best'"),
    ("simulate_route", {"model": "gone"}, "gone"), ("explain_route", {"request": "gone"}, "no record"),
    ("route_request", {"model": "up/m", "messages": []}, "messages: Expected `array` of length >= 1"),
    ("get_prices", {"model": "gone"}, "Nobody serves 'gone'"), ("update_key", {"key": "gone"}, "no client key 'gone'"),
    ("create_key", {"name": "x", "mcp_scopes": ["read:everything"]}, "'read:everything' is no scope"),
    ("test_combo", {"combo": "gone"}, "There is no combo 'gone'"),
]


async def test_what_is_wrong_is_told_in_words(scene):
    async with over_http(scene) as client:
        for name, given, words in WRONG:
            assert words in refused(await client.call_tool(name, given)), name
        told = said(await client.call_tool("validate_config", {"text": "[server]\nport = -1"}))
        outcome = said(await client.call_tool("route_request", {"model": "gone", "messages": [{"role": "user", "content": "x"}]}))
    assert not told["ok"] and told["problems"][0]["path"] == "server.port"
    assert (outcome["ok"], outcome["error"]) == (False, "no_model")


async def test_a_tool_that_fails_inside_says_so_and_no_more(scene, gateway, monkeypatch, caplog):
    def broken(*given):
        raise RuntimeError("the inside: sk-up-1-0123456789")

    monkeypatch.setattr(type(gateway.listener.office.recent), "after", broken)
    async with over_http(scene) as client:
        assert refused(await client.call_tool("read_logs", {})) == "The gateway failed on this call; its log has the details."
    assert "read_logs failed" in caplog.text
