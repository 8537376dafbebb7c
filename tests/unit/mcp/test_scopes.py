"""A tool is done only for a key that holds all of its scopes; scopes come from the key and from nowhere else."""
import pytest

from gateway.mcp.callers import Caller
from gateway.mcp.calling import Toolbox
from gateway.mcp.table import BY_NAME, TOOLS
from gateway.policy.scopes import SCOPES, granted, known
from tests.arch.source import ROOT
from tests.conftest import client_key, provider
from tests.unit.mcp.conftest import ON, over_http, refused, said

WRONG = {"\0": 1}                                # inputs that no tool takes: whoever may call it is told so, and nothing is done


@pytest.fixture
async def toolbox(gateway):
    await gateway(ON)
    return Toolbox(gateway.listener.office)


async def test_every_tool_with_every_scope_alone(toolbox):
    for tool in TOOLS:
        for scope in SCOPES:
            told = await toolbox.call(tool.name, WRONG, Caller("mcp:one", frozenset((scope,))))
            assert told.failed
            allowed = set(tool.scopes) <= {scope}
            assert ("unknown field" in told.text) is allowed, (tool.name, scope)
            assert allowed or all(missing in told.text for missing in set(tool.scopes) - {scope})


async def test_every_tool_with_its_scopes_and_without_one_of_them(toolbox):
    for tool in TOOLS:
        assert "unknown field" in (await toolbox.call(tool.name, WRONG, Caller("mcp:all", frozenset(tool.scopes)))).text
        for scope in tool.scopes:
            told = await toolbox.call(tool.name, WRONG, Caller("mcp:less", frozenset(SCOPES) - {scope}))
            assert told.text == f"{tool.name} needs {scope}, which your key does not hold."
        assert (await toolbox.call(tool.name, WRONG, Caller("mcp:none", frozenset()))).text.startswith(f"{tool.name} needs ")


def test_there_are_many_tools_and_each_scope_opens_some():
    assert len(TOOLS) == len(BY_NAME) >= 30 and len(SCOPES) >= 13
    assert {scope for tool in TOOLS for scope in tool.scopes} == set(SCOPES)
    assert all(tool.scopes for tool in TOOLS)
    told = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"{len(TOOLS)} tools" in told and f"{len(SCOPES)} scopes" in told


def test_a_pattern_means_all_scopes_that_begin_so():
    assert granted(["*"]) == frozenset(SCOPES) and granted([]) == frozenset()
    assert granted(["write:*", "read:logs"]) == {scope for scope in SCOPES if scope.startswith("write:")} | {"read:logs"}
    assert known("read:*") and not known("read") and not known("r*") and not known("nothing:*") and not known("")


@pytest.fixture
async def keyed(gateway, upstream):
    """A gateway with a key for each scope, and one without any."""
    keys = "".join(client_key(scope, f"gw-key-{n}-0123456789", mcp_scopes=f'["{scope}"]') for n, scope in enumerate(SCOPES))
    return await gateway(ON + keys + client_key("bare", "gw-key-bare-0123456789"))


async def test_a_key_of_the_configuration_sees_and_uses_the_tools_of_its_scopes_alone(keyed):
    for n, scope in enumerate(SCOPES):
        async with over_http(keyed, f"gw-key-{n}-0123456789", "2026-07-28") as client:
            offered = {tool.name for tool in (await client.list_tools()).tools}
            assert offered == {tool.name for tool in TOOLS if tool.scopes == (scope,)}
            for name in {"get_health", "list_keys"} - offered:
                assert "which your key does not hold" in refused(await client.call_tool(name, {}))


@pytest.mark.parametrize("meta", [{"scopes": ["*"]}, {"auth": {"scopes": ["*"]}}, {"gateway": {"scopes": ["write:config"]}}])
async def test_what_a_request_says_of_its_scopes_counts_for_nothing(keyed, meta):
    async with over_http(keyed, "gw-key-0-0123456789") as client:
        assert "needs write:config" in refused(await client.call_tool("reload_config", {}, meta=meta))


async def test_nobody_hands_out_or_takes_over_scopes_that_they_do_not_hold(gateway):
    url = await gateway(ON + client_key("maker", "gw-key-maker-0123456", mcp_scopes='["write:keys", "read:health"]'))
    async with over_http(url) as admin, over_http(url, "gw-key-maker-0123456") as maker:
        said(await admin.call_tool("create_key", {"name": "boss", "mcp_scopes": ["write:config"]}))
        for name, given in (("create_key", {"name": "x", "mcp_scopes": ["*"]}), ("rotate_key", {"key": "boss"}),
                            ("update_key", {"key": "boss", "mcp_scopes": []}), ("revoke_key", {"key": "boss"})):
            assert "scopes that you do not" in refused(await maker.call_tool(name, given)), name
        made = said(await maker.call_tool("create_key", {"name": "x", "mcp_scopes": ["read:health"]}))
        assert "scopes that you do not" in refused(await maker.call_tool("update_key", {"key": "x", "mcp_scopes": ["read:*"]}))
        async with over_http(url, made["secret"]) as new:
            assert said(await new.call_tool("get_health", {}))["version"]
        said(await admin.call_tool("update_key", {"key": "x", "mcp_scopes": ["read:models"]}))
        async with over_http(url, made["secret"]) as new:
            assert "needs read:health" in refused(await new.call_tool("get_health", {}))


async def test_a_key_asks_models_by_its_own_limits(gateway, upstream):
    from gateway.mock import script as say

    up = await upstream(say.reply("hello"))
    key = client_key("small", "gw-key-small-0123456", mcp_scopes='["execute:completions", "read:*"]', models='["m"]', rpm="1")
    url = await gateway(ON + key + provider(up, models='["m", "other"]'))
    ask = {"messages": [{"role": "user", "content": "hi"}]}
    async with over_http(url, "gw-key-small-0123456") as client:
        assert said(await client.call_tool("route_request", {"model": "other", **ask}))["error"] == "forbidden"
        assert said(await client.call_tool("route_request", {"model": "m", **ask}))["text"] == "hello"
        assert said(await client.call_tool("route_request", {"model": "m", **ask}))["error"] == "limited"
        assert "other" not in {row["id"] for row in said(await client.call_tool("list_models", {}))["models"]}
        assert "Nobody serves" in refused(await client.call_tool("get_prices", {"model": "other"}))
    assert len(up.requests) == 1


async def test_each_call_is_in_the_audit_log_without_its_inputs(gateway):
    url = await gateway(ON + client_key("reader", "gw-key-reader-012345", mcp_scopes='["read:models"]'))
    async with over_http(url, "gw-key-reader-012345") as reader, over_http(url) as admin:
        for words in ("something private", "something private", "else"):
            said(await reader.call_tool("list_models", {"words": words}))
        refused(await reader.call_tool("get_config", {}))
        refused(await reader.call_tool("list_models", {"limit": 0}))
        changes = [row for row in said(await admin.call_tool("list_audit", {}))["changes"] if row["who"] == "mcp:reader"][::-1]
    assert [(row["action"], row["ok"]) for row in changes] == [("mcp.list_models", True)] * 3 + [
        ("mcp.get_config", False), ("mcp.list_models", False)]
    one, same, other, denied, _ = changes
    assert one["subject"].startswith("sha256:") and len(one["subject"]) == 74
    assert one["subject"] == same["subject"] != other["subject"] and "private" not in str(changes)
    assert denied["detail"].startswith("insufficient_scope; ") and one["detail"].startswith("ok; ") and one["detail"].endswith(" ms")
