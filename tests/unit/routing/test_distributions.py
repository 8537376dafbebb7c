"""How often does each lead? Shares over many draws, where a strategy leaves something to chance."""
import random
from collections import Counter
from itertools import pairwise

import pytest

from gateway.providers.registry import Model, Price
from gateway.routing.strategies import STRATEGIES
from tests.unit.routing.scene import NOW, error
from tests.unit.routing.test_strategies import Scene

DRAWS = 4_000
FIVE = (Model("m"),) * 5


def firsts(scene, times=DRAWS):
    return Counter(scene.order()[0] for _ in range(times))


def shares(found):
    total = sum(found.values())
    return {id: n / total for id, n in found.items()}


@pytest.mark.parametrize("strategy", ["weighted", "random", "p2c", "strict-random", "bandit"])
def test_equals_lead_equally_often(strategy):
    found = shares(firsts(Scene(strategy, *FIVE)))
    assert set(found) == set("abcde")
    assert all(share == pytest.approx(.2, abs=.03) for share in found.values())


@pytest.mark.parametrize("shares_of", [(70, 20, 10), (1, 1, 98), (5, 0, 5)])
def test_weights_are_shares_and_a_weight_of_zero_never_leads(shares_of):
    found = firsts(Scene("weighted", shares=shares_of))
    for id, weight in zip("abc", shares_of, strict=True):
        assert found[id] / DRAWS == pytest.approx(weight / sum(shares_of), abs=.025)
        assert weight or not found[id]


def test_random_puts_everybody_everywhere():
    scene = Scene("random", *FIVE)
    places = Counter((at, id) for _ in range(DRAWS) for at, id in enumerate(scene.order()))
    assert len(places) == 25
    assert all(n / DRAWS == pytest.approx(.2, abs=.03) for n in places.values())


def test_p2c_leads_with_the_better_of_two_so_the_worst_of_five_never_and_the_best_two_times_in_five():
    scene = Scene("p2c", *FIVE)
    for rank, id in enumerate("abcde"):
        for n in range(20):
            scene.health.stats.add(scene.candidates[id][0], n >= rank, NOW, first_s=1.0)
    found = firsts(scene)
    for rank, id in enumerate("abcde"):
        assert found[id] / DRAWS == pytest.approx((4 - rank) / 10, abs=.03)


def test_strict_random_deals_whole_decks_in_changing_orders():
    scene = Scene("strict-random", *FIVE)
    drawn = [scene.order()[0] for _ in range(500)]
    decks = [tuple(drawn[at:at + 5]) for at in range(0, 500, 5)]
    assert all(sorted(deck) == list("abcde") for deck in decks)
    assert len(set(decks)) > 40
    assert sum(one == two for one, two in pairwise(drawn)) <= 99, "twice in a row only where one deck ends and the next begins"


def test_the_bandit_leads_with_the_better_more_often_the_more_it_knows():
    led = []
    for seen in (2, 10, 60):
        scene = Scene("bandit", Model("m"), Model("m"))
        for n in range(seen):
            scene.health.stats.add(scene.candidates["a"][0], n % 5 != 0, NOW)
            scene.health.stats.add(scene.candidates["b"][0], n % 2 == 0, NOW)
        led.append(firsts(scene, 2_000)["a"] / 2_000)
    assert led[0] < led[1] < led[2] and led[2] > .95
    assert led[0] > .3, "who is hardly known is tried now and then"


def test_auto_explores_as_often_as_it_is_told():
    models = [Model("m", price=Price(input=n, output=n)) for n in (1, 8, 9)]
    found = firsts(Scene("auto", *models, exploration=.3, mode_pack="cost-saver"))
    assert found["a"] / DRAWS == pytest.approx(.8, abs=.03), "by lot it may be the best, too"
    assert found["b"] == pytest.approx(found["c"], abs=.04 * DRAWS)


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_the_same_dice_give_the_same_days(strategy):
    def day():
        scene = Scene(strategy, *FIVE, seed=7)
        return [scene.serve(*random.Random(n).sample("abcde", n % 4)) for n in range(40)]
    assert day() == day()


def test_who_is_excluded_under_one_name_is_not_under_another():
    scene = Scene("auto", exploration=0.0)
    scene.health.memory.exclusions.put(("other", "a"), (NOW + 300, 300.0, 0))
    assert scene.order()[0] == "a"
    scene.health.memory.exclusions.put(("best", "a"), (NOW + 300, 300.0, 0))
    scene.health.failed(scene.candidates["b"][0], error("auth"), NOW, 0.0)
    assert scene.order()[0] == "c"
