"""What an answer cost: every kind of token at its own rate, unknown stays unknown, and the table says where it is from."""
import importlib.util
import subprocess
import sys
from importlib import resources
from pathlib import Path

import msgspec
import pytest

from gateway.config.load import loads
from gateway.core.events import Usage
from gateway.prices import Price, Tier, as_data, cost, table

M = 1_000_000
FULL = Price(input=2.0, output=10.0, cached=0.2, cache_write=2.5, reasoning=20.0)


@pytest.mark.parametrize(("usage", "dollars"), [
    ({"input": M}, 2.0), ({"output": M}, 10.0), ({"input": M, "cached": M}, 0.2), ({"input": M, "cache_write": M}, 2.5),
    ({"output": M, "reasoning": M}, 20.0), ({"input": 4 * M, "cached": M, "cache_write": M}, 2 * 2.0 + 0.2 + 2.5),
    ({"input": M, "output": M, "reasoning": M // 2}, 2.0 + 5.0 + 10.0), ({}, 0.0),
])
def test_each_kind_of_token_has_its_rate(usage, dollars):
    assert cost(Usage(**usage), FULL) == pytest.approx(dollars)


@pytest.mark.parametrize("usage", [{"input": M, "cached": M}, {"input": M, "cache_write": M}])
def test_a_rate_that_nobody_states_is_that_of_any_token(usage):
    assert cost(Usage(**usage), Price(input=2.0, output=10.0)) == pytest.approx(2.0)
    assert cost(Usage(output=M, reasoning=M), Price(input=2.0, output=10.0)) == pytest.approx(10.0)


def test_unknown_is_not_nothing():
    assert cost(Usage(input=1), None) is None and cost(None, FULL) is None
    assert cost(Usage(input=1), Price()) == 0.0


def test_counts_that_cannot_be_do_not_make_it_negative():
    assert cost(Usage(input=10, cached=1_000, cache_write=1_000, output=1, reasoning=50), FULL) > 0
    assert cost(Usage(input=M, cached=-5), FULL) == pytest.approx(2.0)


def test_a_long_request_costs_the_tier_s_rates_for_all_of_it():
    price = Price(input=1.0, output=5.0, cached=0.1, tiers=(Tier(above=200_000, input=2.0, output=8.0), Tier(above=500_000, input=3.0)))
    assert cost(Usage(input=200_000), price) == pytest.approx(0.2)
    assert cost(Usage(input=400_000, output=M), price) == pytest.approx(0.8 + 8.0)
    assert cost(Usage(input=M, output=M, cached=M), price) == pytest.approx(0.1 + 5.0)


def test_every_row_of_the_table_is_a_price_with_a_source():
    raw = resources.files("gateway.prices").joinpath("prices.json").read_bytes()
    assert len(raw) <= 150_000
    found = table._table()
    assert all(source.name and source.url.startswith("https://") and source.as_of >= "2026" for source in found.sources)
    assert set(found.same.values()) <= set(found.providers)
    for provider in found.providers:
        for name, row in table._rows(provider).items():
            price = table._price(row)
            assert name == name.lower() and price.source and 0 <= price.input < 1_000 and 0 <= price.output < 10_000
            assert [tier.above for tier in price.tiers] == sorted(tier.above for tier in price.tiers)


def test_a_model_is_found_by_its_name_or_without_its_date():
    assert table.find("openai", "gpt-4o") == table.find("openai", "GPT-4o") == table.find("openai-responses", "gpt-4o")
    assert table.find("anthropic", "claude-haiku-4-5-20251001") == table.find("anthropic", "claude-haiku-4-5")
    assert table.find("openai", "no-such-model") is None and table.find("no-such-provider", "gpt-4o") is None


def test_prices_are_bound_to_models_when_the_configuration_compiles():
    text = '[[providers]]\npreset = "openai"\napi_keys = ["sk-1"]\nmodels = ["gpt-4o", {id = "gpt-5.5", price = {input = 7, output = 8, cache_write = 9}}, "new"]'
    models = loads(text).providers[0].models
    assert models["gpt-4o"].price.source.startswith("genai-prices")
    assert (models["gpt-5.5"].price.input, models["gpt-5.5"].price.cache_write, models["gpt-5.5"].price.source) == (7, 9, "")
    assert models["new"].price is None


def test_the_price_of_one_provider_is_not_another_s():
    text = '[[providers]]\nid = "mine"\nbase_url = "https://mine.example/v1"\napi_keys = ["sk-1"]\nmodels = ["gpt-4o"]'
    assert loads(text).providers[0].models["gpt-4o"].price is None


def test_lists_show_what_is_known():
    assert as_data(None) is None
    assert as_data(Price(input=1.0, source="s")) == {"input": 1.0, "output": 0.0, "source": "s"}
    assert as_data(Price(input=1.0, tiers=(Tier(above=5, input=2.0),)))["tiers"][0]["above"] == 5


@pytest.mark.skipif(importlib.util.find_spec("genai_prices") is None, reason="genai-prices is not installed")
def test_the_table_is_what_the_script_makes():
    script = Path(__file__).parents[3] / "scripts" / "build-catalog"
    said = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr


def test_rows_are_decoded_for_whom_somebody_asks_only():
    assert all(isinstance(rows, msgspec.Raw) for rows in table._table().providers.values())
