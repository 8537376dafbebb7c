"""Nobody may have a model think for longer than the operator allows."""
import copy

import pytest

from gateway.wire.effort import Ceiling, limited

LOW = Ceiling(tokens=2_000, effort="low")
OFF = Ceiling(off=True)
# wire, what is asked, at most low / 2000 tokens, without thinking
CASES = [
    ("openai-chat", {"reasoning_effort": "high"}, {"reasoning_effort": "low"}, {"reasoning_effort": "none"}),
    ("openai-chat", {"reasoning_effort": "minimal"}, None, {"reasoning_effort": "none"}),
    ("openai-chat", {"reasoning": {"max_tokens": 9_000}}, {"reasoning": {"max_tokens": 2_000}}, {"reasoning": {"enabled": False}}),
    ("openai-chat", {"thinking": {"type": "enabled"}}, None, {"thinking": {"type": "disabled"}}),
    ("openai-chat", {"chat_template_kwargs": {"enable_thinking": True}}, None, {"chat_template_kwargs": {"enable_thinking": False}}),
    ("openai-responses", {"reasoning": {"effort": "xhigh", "summary": "auto"}}, {"reasoning": {"effort": "low", "summary": "auto"}},
     {"reasoning": {"effort": "none", "summary": "auto"}}),
    ("anthropic", {"thinking": {"type": "enabled", "budget_tokens": 9_000}}, {"thinking": {"type": "enabled", "budget_tokens": 2_000}},
     {"thinking": {"type": "disabled"}}),
    ("anthropic", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}},
     {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}, {"thinking": {"type": "disabled"}}),
    ("gemini", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 8_000, "includeThoughts": True}}},
     {"generationConfig": {"thinkingConfig": {"thinkingBudget": 2_000, "includeThoughts": True}}},
     {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0, "includeThoughts": False}}}),
    ("gemini", {"generationConfig": {"thinkingConfig": {"thinkingBudget": -1}}},
     {"generationConfig": {"thinkingConfig": {"thinkingBudget": 2_000}}}, {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}),
    ("gemini", {"generationConfig": {"thinkingConfig": {"thinkingLevel": "HIGH"}}},
     {"generationConfig": {"thinkingConfig": {"thinkingLevel": "low"}}}, {"generationConfig": {"thinkingConfig": {"thinkingLevel": "minimal"}}}),
    ("ollama", {"think": "high"}, {"think": "low"}, {"think": False}),
    ("ollama", {"think": True}, None, {"think": False}),
    ("openai-chat", {"temperature": 1}, None, None),
]


@pytest.mark.parametrize(("wire", "asked", "capped", "none"), CASES)
def test_what_is_asked_for_is_made_smaller_or_taken_out(wire, asked, capped, none):
    for ceiling, wanted in ((LOW, capped), (OFF, none)):
        doc = copy.deepcopy(asked)
        assert limited(doc, wire, ceiling) is (wanted is not None)
        assert doc == (wanted or asked)
        assert limited(doc, wire, ceiling) is False, "twice is once"


def test_a_budget_below_the_least_is_none():
    doc = {"thinking": {"type": "enabled", "budget_tokens": 5_000}}
    assert limited(doc, "anthropic", Ceiling(tokens=500))
    assert doc == {"thinking": {"type": "disabled"}}
