"""`gateway mcp` says why it cannot begin, on standard error, and chooses between a gateway that runs and none."""
import importlib.util

import pytest
from click.testing import CliRunner

from gateway.cli import mcp, root
from gateway.config.load import ConfigError, loads
from tests.unit.config.files import refused


def typed(*words):
    return CliRunner().invoke(root(), ["mcp", *words])


@pytest.mark.parametrize(("words", "code", "told"), [
    (("--url", "http://127.0.0.1:1"), 1, "no gateway answers at http://127.0.0.1:1"),
    (("--url", "http://127.0.0.1:1", "--offline"), 2, "exclude each other"),
    (("--scope", "read:nothing"), 2, "'read:nothing' is no scope"),
])
def test_what_is_wrong_is_told(words, code, told):
    result = typed(*words)
    assert result.exit_code == code and told in result.stderr and not result.stdout


def test_without_the_package_both_ways_name_it(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name.startswith("mcp") else real(name, *more))
    assert "pip install 'gateway[mcp]'" in typed("--offline").stderr
    assert refused("[mcp]\nenabled = true") == {"mcp.enabled": "needs a package: pip install 'gateway[mcp]'; or leave it out"}


@pytest.mark.parametrize(("server", "where"), [
    ("", "http://127.0.0.1:8788"), ('host = "::1"', "http://[::1]:8788"), ("port = 0", ""),
    ('host = "0.0.0.0"\n[auth]\nrequired = true', "http://127.0.0.1:8788")])
def test_the_configured_address_is_where_a_gateway_is_looked_for(server, where):
    assert mcp.address(loads(f"[server]\n{server}\n")) == where


async def test_a_gateway_without_mcp_says_so(gateway):
    import asyncio

    url = await gateway("")
    result = await asyncio.to_thread(typed, "--url", url)
    assert result.exit_code == 1 and "The MCP server is switched off ([mcp] enabled)" in result.stderr


@pytest.mark.parametrize("scopes", ['["read"]', '["read:*", "write:nothing"]', '[""]'])
def test_a_scope_of_a_key_that_means_nothing_is_a_problem_by_its_path(scopes):
    with pytest.raises(ConfigError) as failed:
        loads(f'[[auth.keys]]\nname = "a"\nkey = "gw-0123456789"\nmcp_scopes = {scopes}\n')
    [(path, message)] = failed.value.problems
    assert path.startswith("auth.keys[0].mcp_scopes[") and "is no scope" in message
