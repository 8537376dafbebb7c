"""The catalogue knows every name of every model."""
from gateway.core.secret import Secret
from gateway.providers.registry import Account, Model
from gateway.routing.catalog import fingerprint
from tests.unit.routing.scene import catalog, labels, provider


def test_a_model_served_by_several_providers_is_one_name_in_configured_order():
    found = catalog(provider("b", "m", order=2), provider("a", "m", "x", order=1))
    assert labels(found.kinds["chat"].ids["m"]) == ["a/m", "b/m"]
    assert list(found.by_model) == ["m", "x"]


def test_the_list_has_auto_first_then_models_once_then_targets_and_aliases():
    found = catalog(provider("a", Model("m", aliases=("short",))), provider("b", "m", order=1))
    assert [(entry.id, entry.form) for entry in found.listed] == [
        ("auto", "virtual"), ("m", "model"), ("a/m", "target"), ("b/m", "target"), ("short", "alias")]
    assert labels(found.find("m").targets) == ["a/m", "b/m"]
    assert found.find("nobody") is None


def test_an_alias_that_is_a_model_of_somebody_is_listed_as_that_model():
    found = catalog(provider("a", Model("big", aliases=("m",))), provider("b", "m", order=1))
    assert labels(found.find("m").targets) == ["b/m"]


def test_demo_is_listed_by_its_full_name_only():
    found = catalog(provider("a", "m"), provider("demo", "echo", order=9))
    assert [entry.id for entry in found.listed] == ["auto", "m", "a/m", "demo/echo"]
    assert list(found.by_model) == ["m", "demo/echo"]
    assert labels(found.find("auto").targets) == ["a/m"]


def test_demo_alone_is_auto():
    assert labels(catalog(provider("demo", "echo")).find("auto").targets) == ["demo/echo"]


def test_a_catalogue_of_nothing_lists_nothing():
    assert catalog().listed == ()


def test_a_candidate_has_its_keys_ready_from_its_own_to_its_providers():
    [target] = catalog(provider("a", "org/m", keys=2)).targets
    first, second = target.candidates
    name = fingerprint(first.account)
    assert first.keys == (("a", "org/m", name), ("a", "", name), ("a", "org/m", ""), ("a", "", ""))
    assert first.key != second.key
    assert second.account_key != first.account_key


def test_an_account_is_known_by_its_key_and_not_by_its_place():
    assert fingerprint(Account(1, Secret("sk-one"))) == fingerprint(Account(7, Secret("sk-one")))
    assert fingerprint(Account(1, Secret("sk-one"))) != fingerprint(Account(1, Secret("sk-two")))
    assert "sk-one" not in fingerprint(Account(1, Secret("sk-one")))
    assert fingerprint(Account(1, Secret(""))) != fingerprint(Account(2, Secret("")))


def test_google_counts_days_in_california():
    found = catalog(provider("g", "m", base_url="https://generativelanguage.googleapis.com/v1beta/openai"),
                    provider("n", "m", wire="gemini"), provider("x", "m", base_url="https://notgoogleapis.example"))
    assert [target.pacific for target in found.targets] == [True, True, False]
