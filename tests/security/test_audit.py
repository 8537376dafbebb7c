"""Does every change by the operator, over the API or by a tool, leave a line in the audit log? From the tables, one by one."""
import json
from typing import Any

import pytest

from gateway.admin.routes import ROUTES
from gateway.admin.sessions import COOKIE
from gateway.mcp.table import TOOLS
from gateway.mock import script as say
from gateway.policy import passwords
from tests.conftest import client_key, provider
from tests.security.stranger import Wire
from tests.unit.mcp.conftest import over_http, said

ADMIN_KEY, PASSWORD = "adm-0123456789abcdef", "correct horse battery"
AS_ADMIN = [("Authorization", f"Bearer {ADMIN_KEY}")]
# These only say what would be: they change nothing, cost nothing and are sent by POST because of the size of what they look at.
READING = {("POST", "/compression/preview"), ("POST", "/config/validate")}
ASKED = {"model": "up/m", "messages": [{"role": "user", "content": "hi"}]}
# In this order; {key}: the id of the key that was made.
CHANGES: dict[tuple[str, str], tuple[str, Any, str]] = {
    ("POST", "/login"): ("/login", {"password": PASSWORD}, "login"),
    ("POST", "/logout"): ("/logout", None, "logout"),
    ("POST", "/providers/{id}/test"): ("/providers/up/test", None, "provider.test"),
    ("POST", "/cooldowns/clear"): ("/cooldowns/clear", {"provider": "up"}, "cooldown.clear"),
    ("PUT", "/combos/{name}"): ("/combos/quick", {"targets": ["up/m"]}, "combo.save"),
    ("POST", "/combos/order"): ("/combos/order", {"names": ["quick"]}, "combo.order"),
    ("POST", "/combos/{name}/test"): ("/combos/quick/test", None, "combo.test"),
    ("DELETE", "/combos/{name}"): ("/combos/quick", None, "combo.delete"),
    ("POST", "/playground"): ("/playground", ASKED, "playground"),
    ("POST", "/trial"): ("/trial", {"targets": ["up/m"]}, "trial"),
    ("POST", "/keys"): ("/keys", {"name": "ci"}, "key.create"),
    ("PATCH", "/keys/{id}"): ("/keys/{key}", {"rpm": 7}, "key.change"),
    ("POST", "/keys/{id}/rotate"): ("/keys/{key}/rotate", {}, "key.rotate"),
    ("POST", "/keys/{id}/revoke"): ("/keys/{key}/revoke", None, "key.revoke"),
    ("PUT", "/groups/{name}"): ("/groups/team", {"budget_usd_day": 1}, "group.save"),
    ("DELETE", "/groups/{name}"): ("/groups/team", None, "group.drop"),
    ("POST", "/cache/clear"): ("/cache/clear", None, "cache.clear"),
    ("POST", "/reload"): ("/reload", None, "reload"),
}


@pytest.fixture
async def scene(gateway, upstream, stack):
    """A gateway with all that can be changed; (its address, somebody who asks it, what its audit log says)."""
    up = await upstream(say.reply("hello"))
    url = await gateway('[mcp]\nenabled = true\n[store]\nurl = "memory:"\n' + client_key() + provider(up, "up")
                        + f'[admin]\nkey = "{ADMIN_KEY}"\npassword_hash = "{passwords.hashed(PASSWORD)}"\n')

    async def reload():
        return []

    gateway.listener.office.reload = reload
    wire = Wire(url)
    stack.callback(wire.close)

    async def lines() -> list[dict[str, Any]]:
        return (await wire.whole("GET", "/admin/api/audit?limit=500", AS_ADMIN)).json["changes"]
    return url, wire, lines


def test_every_route_that_changes_something_is_tried():
    changing = {(route.method, route.path) for route in ROUTES if route.method != "GET"}
    assert set(CHANGES) == changing - READING, "tell in CHANGES how the new route is asked, and which line it leaves"


async def test_every_change_over_the_api_leaves_a_line(scene):
    url, wire, lines = scene
    cookie, key, known = "", "", 0
    for (method, _), (path, body, action) in CHANGES.items():
        session = path in ("/login", "/logout")
        headers = [("X-Gateway-Admin", "1"), ("Cookie", f"{COOKIE}={cookie}")] if session else AS_ADMIN
        given = b"" if body is None else json.dumps(body).encode()
        heard = await wire.whole(method, "/admin/api" + path.replace("{key}", key), headers, given)
        assert heard.status == 200, (path, heard.body)
        if path == "/login":
            cookie = heard.headers["set-cookie"].partition(";")[0].partition("=")[2]
        if path == "/keys":
            key = heard.json["key"]["id"]
        told = await lines()
        fresh, known = told[:len(told) - known], len(told)
        assert [(row["action"], row["ok"]) for row in fresh] == [(action, True)], path
        assert fresh[0]["who"] == ("session" if session else "key"), path


async def test_what_is_refused_or_fails_leaves_a_line_too(scene):
    url, wire, lines = scene
    admin = [("X-Gateway-Admin", "1")]
    assert (await wire.whole("POST", "/admin/api/login", admin, b'{"password": "wrong"}')).status == 401
    assert (await wire.whole("POST", "/admin/api/playground", AS_ADMIN, b'{"model": "gone", "messages": []}')).status in (400, 404)
    assert [(row["action"], row["ok"]) for row in await lines()] == [("playground", False), ("login", False)]


async def test_every_call_of_a_tool_leaves_a_line(scene):
    url, wire, lines = scene
    async with over_http(url, ADMIN_KEY) as client:
        for tool in TOOLS:
            await client.call_tool(tool.name, {})
        said(await client.call_tool("set_group_budget", {"group": "team", "usd_day": 5}))
    told = [row for row in await lines() if row["action"].startswith("mcp.")][::-1]
    assert [row["action"] for row in told] == [f"mcp.{tool.name}" for tool in TOOLS] + ["mcp.set_group_budget"]
    assert {row["who"] for row in told} == {"mcp:admin"} and told[-1]["ok"]
    assert [row["ok"] for row in told if row["action"] == "mcp.create_key"] == [False]
