"""Programs are known by what they call themselves; what strangers write there makes no new names."""
import pytest

from gateway.core.agents import FAMILIES, family


@pytest.mark.parametrize(("line", "name"), [
    ("claude-cli/2.1.5 (external, cli)", "claude-code"), ("codex_cli_rs/0.61.0 (Debian 12; x86_64) xterm", "codex"),
    ("GeminiCLI/0.9.0/gemini-2.5-pro (linux; x64)", "gemini-cli"), ("OpenAI/Python 3.51.0", "openai-python"),
    ("AsyncOpenAI/Python 3.51.0", "openai-python"), ("Anthropic/JS 0.70.1", "anthropic-js"), ("curl/7.88.1", "curl"),
    ("Python/3.11 aiohttp/3.14.1", "aiohttp"), ("litellm/1.80 OpenAI/Python 3.0", "litellm"), ("Mozilla/5.0 (X11)", "browser"),
    ("", ""), ("something of my own/1", "other"), ("x" * 100_000, "other"),
])
def test_a_line_names_a_family(line, name):
    assert family(line) == name


def test_ten_thousand_names_are_one():
    assert {family(f"agent-{n}/1") for n in range(10_000)} <= FAMILIES
