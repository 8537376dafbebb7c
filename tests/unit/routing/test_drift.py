"""Another spelling is no other model."""
import pytest

from gateway.routing.drift import drifted
from gateway.routing.stats import Stats


@pytest.mark.parametrize(("asked", "served"), [
    ("gpt-4o", "gpt-4o-2024-08-06"),
    ("gpt-4-0613", "gpt-4"),
    ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"),
    ("anthropic/claude-3.5-sonnet", "claude-3-5-sonnet-20241022"),
    ("claude-3-5-sonnet", "us.anthropic.claude-3-5-sonnet-20241022-v2:0"),
    ("gemini-2.0-flash", "models/gemini-2.0-flash-001"),
    ("deepseek/deepseek-r1:free", "deepseek-r1"),
    ("accounts/fireworks/models/llama-v3p1-70b", "llama-v3p1-70b"),
    ("qwen3-8b", "/models/Qwen3-8B-Q4_K_M.gguf"),
    ("qwen3", "qwen3:latest"),
    ("mistral-large-latest", "mistral-large-2411"),
    ("command-r", "command-r-08-2024"),
    ("GPT-4o", "gpt-4o"),
    ("m", ""),
])
def test_the_same_in_other_words(asked, served):
    assert not drifted(asked, served)


@pytest.mark.parametrize(("asked", "served"), [
    ("gpt-4o", "gpt-4o-mini"),
    ("gpt-4o-mini-2024-07-18", "gpt-4o-2024-08-06"),
    ("gpt-4o-2024-05-13", "gpt-4o-2024-08-06"),
    ("claude-opus-4-1", "claude-sonnet-4-5"),
    ("o1", "o1-preview"),
    ("qwen3:8b", "qwen3:14b"),
    ("llama-3.1-70b", "llama-3.3-70b"),
    ("gpt-4", "gpt-4.1"),
    ("m", "\x00" * 10_000),
])
def test_another_model(asked, served):
    assert drifted(asked, served)


def test_each_pair_is_news_once_and_counted_always():
    stats = Stats()
    assert [stats.drifted("a/m", "x"), stats.drifted("a/m", "x"), stats.drifted("a/m", "y")] == [True, False, True]
    assert stats.drifts == {("a/m", "x"): 2, ("a/m", "y"): 1}
