"""What an operator clears is forgotten, and nothing else."""
from gateway.core.errors import GatewayError
from gateway.core.secret import Secret
from gateway.providers.registry import Account, Model, Provider
from gateway.routing.catalog import Catalog
from gateway.routing.forgive import forgive
from gateway.routing.health import Health


def house():
    """Two providers with two keys and two models each; everybody failed."""
    catalog = Catalog([Provider(id=name, name=name, order=n, models={"m": Model("m"), "x": Model("x")},
                                accounts=(Account(1, Secret(f"sk-{name}-1")), Account(2, Secret(f"sk-{name}-2"))))
                       for n, name in enumerate(("a", "b"))])
    health = Health()
    candidates = [candidate for target in catalog.targets for candidate in target.candidates]
    for candidate in candidates:
        health.failed(candidate, GatewayError("rate_limited", "slow down", retry_after_s=600.0), 10.0, 10.0)
    return health, candidates


def resting(health, candidates):
    return {(c.target.provider.id, c.target.model.id, c.account.ordinal) for c in candidates if health.blocked(c, 11.0)}


def test_a_provider_is_cleared_whole():
    health, candidates = house()
    health.all_resting(11.0)
    assert forgive(health, "a") == 4
    assert {name for name, _, _ in resting(health, candidates)} == {"b"}
    assert {key[0] for key in health.all_resting(11.0)} == {"b"}


def test_one_model_or_one_key_is_cleared_alone():
    health, candidates = house()
    assert forgive(health, "a", model="m") == 2
    key = next(c for c in candidates if c.target.provider.id == "b" and c.account.ordinal == 2).key[2]
    assert forgive(health, "b", account=key) == 2
    assert resting(health, candidates) == {("a", "x", 1), ("a", "x", 2), ("b", "m", 1), ("b", "x", 1)}


def test_an_open_breaker_is_closed_with_its_provider_only():
    health, candidates = house()
    for n in range(20):
        for candidate in candidates[:4]:
            health.failed(candidate, GatewayError("server_error", "down"), 20.0 + 6 * n, 20.0)
    assert health.breaker(candidates[0].target, 140.0) != "closed"
    forgive(health, "a", model="m")
    assert health.breaker(candidates[0].target, 140.0) != "closed"
    forgive(health, "a")
    assert health.breaker(candidates[0].target, 140.0) == "closed"
    assert ("breaker", ("a", "", "")) in health.changed
