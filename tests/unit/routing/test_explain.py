"""Explain tells what a request would meet, by the code that routes it."""
import pytest

from gateway.core.errors import GatewayError
from gateway.providers.registry import Model
from gateway.routing.explain import as_data, explain
from gateway.routing.health import Health
from tests.unit.routing.scene import NOW, WALL, catalog, error, provider, request, walk

HOUSE = catalog(provider("a", "m", keys=2), provider("b", Model("m", vision=False), order=1), provider("c", "m", order=2))


def told(name="m", health=None, **facts):
    return explain(name, HOUSE, health or Health(), request(**facts), 10, NOW)


def test_places_come_in_the_order_of_attempts_with_a_reason_each():
    assert [(p.position, p.label, p.account, p.skip) for p in told()] == [
        (1, "a/m", 1, ""), (2, "a/m", 2, ""), (3, "b/m", 1, ""), (4, "c/m", 1, "")]
    assert told()[0].reason == "serves this model; priority order, keys take turns"
    assert told("c/m")[0].reason == "named with its provider; priority order"


def test_who_is_skipped_has_no_place_and_says_why():
    health = Health()
    health.failed(HOUSE.targets[0].candidates[0], error("rate_limited", 40), NOW, WALL)
    places = told(health=health, images=1)
    assert [(p.position, p.label, p.skip) for p in places] == [
        (None, "a/m", "cooldown"), (1, "a/m", ""), (None, "b/m", "vision"), (2, "c/m", "")]
    assert (places[0].reason, places[0].retry_s) == ("rests for 40 s after rate_limited", 40.0)
    assert places[2].reason == "cannot see images"


def test_asking_changes_nothing():
    health = Health()
    for _ in range(3):
        told(health=health)
    assert walk(HOUSE, health=health).next(NOW).account.ordinal == 1


def test_it_is_plain_data_without_any_key():
    rows = as_data(told())
    assert rows[0]["label"] == "a/m"
    assert rows[0]["account_label"] == "key1"
    assert "sk-" not in repr(rows)


def test_without_a_request_an_ordinary_one_is_meant():
    assert explain("auto", HOUSE, Health(), None, 0, NOW)[0].reason == "is part of auto; priority order, keys take turns"
    assert explain("claude-opus-4", HOUSE, Health(), None, 0, NOW)[0].position == 1


def test_an_unknown_name_is_an_error_as_for_a_request():
    with pytest.raises(GatewayError, match="nobody"):
        told("nobody")
