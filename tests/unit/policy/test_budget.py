"""Reserve, spend, settle: what is spent and what is reserved never pass a limit together, by the day and by the month."""
import random

import pytest

from gateway.core.errors import GatewayError
from gateway.core.keys import NANOS, GroupRow, SpentRow
from gateway.policy.budget import Budgets, chain, dollars, nanos, periods, resets, scope

NOON = 1_796_040_000.0                           # 2026-11-30T12:00:00Z


class Wall:
    def __init__(self, at=NOON):
        self.at = at

    def __call__(self):
        return self.at


@pytest.fixture
def wall():
    return Wall()


@pytest.fixture
def budgets(wall):
    return Budgets(wall)


KEY = (scope("key:a", "client key 'a'", 1.0, 10.0),)


def refusal(budgets, usd, scopes=KEY):
    with pytest.raises(GatewayError) as caught:
        budgets.reserve(scopes, nanos(usd))
    return caught.value


def test_what_is_reserved_counts_until_it_is_settled(budgets):
    hold = budgets.reserve(KEY, nanos(0.6))
    error = refusal(budgets, 0.6)
    assert (error.status, error.code, error.retry_after_s) == (429, "budget_exceeded", 1.0)
    hold.settle(nanos(0.1))
    hold.settle(nanos(0.1))
    assert budgets.spent("key:a") == (nanos(0.1), nanos(0.1))
    budgets.reserve(KEY, nanos(0.6))


def test_a_spent_day_says_when_it_starts_anew(budgets):
    budgets.reserve(KEY, nanos(0.5)).settle(nanos(0.9))
    error = refusal(budgets, 0.2)
    assert error.retry_after_s == 12 * 3600
    assert error.message == ("The budget of the client key 'a' is $1.00 a day (UTC): $0.9 are spent and this request may cost $0.2. "
                             "It starts anew at 2026-12-01T00:00:00Z.")


def test_the_next_day_is_free_again_and_the_month_goes_on(budgets, wall):
    month_only = (scope("key:a", "client key 'a'", 1.0, 1.5),)
    wall.at -= 86_400
    budgets.reserve(month_only, nanos(0.9)).settle(nanos(0.9))
    wall.at += 86_400
    error = refusal(budgets, 0.7, month_only)
    assert "a month" in error.message and error.retry_after_s == 12 * 3600
    wall.at += 86_400
    budgets.reserve(month_only, nanos(0.9))


def test_what_began_yesterday_is_settled_with_yesterday(budgets, wall):
    hold = budgets.reserve(KEY, nanos(0.9))
    wall.at += 86_400
    hold.settle(nanos(0.8))
    assert budgets.spent("key:a") == (0, 0)
    assert {(row.period, row.nanos) for row in budgets.changes()} == {("2026-11-30", nanos(0.8)), ("2026-11", nanos(0.8))}
    assert not budgets.changes() and not budgets


def test_every_scope_above_must_have_room(budgets):
    groups = {"team": GroupRow(name="team", parent="org", budget_usd_day=1.0), "org": GroupRow(name="org", budget_usd_month=1.5)}
    one, two = ((scope(f"key:{name}", name, 0, 0), *chain(groups, "team")) for name in "ab")
    budgets.reserve(one, nanos(0.7)).settle(nanos(0.7))
    assert "group 'team'" in refusal(budgets, 0.7, two).message
    assert budgets.spent("key:b") == (0, 0)


def test_a_circle_of_groups_is_gone_round_once():
    groups = {"a": GroupRow(name="a", parent="b"), "b": GroupRow(name="b", parent="a")}
    assert [one.name for one in chain(groups, "a")] == ["group:a", "group:b"]
    assert [one.name for one in chain({}, "gone")] == ["group:gone"]


def test_attempts_that_cost_something_leave_less_for_the_next(budgets):
    hold = budgets.reserve(KEY, nanos(0.4))
    hold.again()
    hold.spend(nanos(0.4))
    hold.again()
    hold.spend(nanos(0.3))
    with pytest.raises(GatewayError):
        hold.again()
    hold.settle(nanos(0.7))
    assert budgets.spent("key:a")[0] == nanos(0.7)


def test_without_a_limit_spending_is_counted_all_the_same(budgets):
    free = (scope("key:b", "b", 0, 0),)
    budgets.reserve(free, 0).settle(nanos(3))
    assert budgets.spent("key:b") == (nanos(3), nanos(3))
    refusal(budgets, 0.1, (scope("key:b", "b", 2.0, 0),))


def test_what_others_spent_counts(budgets):
    day, month = periods(NOON)
    budgets.others([SpentRow("key:a", day, nanos(0.95)), SpentRow("key:a", month, nanos(3))])
    assert refusal(budgets, 0.1).retry_after_s == 12 * 3600
    assert budgets.spent("key:a") == (nanos(0.95), nanos(3))
    assert not budgets.changes()


def test_no_order_of_requests_passes_a_limit(budgets):
    """Whatever starts and ends when: spent and reserved stay below, as long as nothing costs more than it reserved."""
    dice, held, limit = random.Random(7), [], nanos(1.0)
    for _ in range(3000):
        if held and dice.random() < 0.5:
            hold, most = held.pop(dice.randrange(len(held)))
            hold.settle(dice.randint(0, most))
        else:
            most = dice.randint(1, nanos(0.05))
            try:
                held.append((budgets.reserve(KEY, most), most))
            except GatewayError:
                pass
        assert budgets.spent("key:a")[0] + sum(most for _, most in held) <= limit
    assert budgets.spent("key:a")[0] > 0.9 * limit


@pytest.mark.parametrize(("usd", "text"), [(5, "$5.00"), (1234.5, "$1,234.50"), (0.25, "$0.25"), (0.00123, "$0.0012"), (0, "$0.00"), (0.0000032, "$0.0000032")])
def test_money_is_written_as_people_read_it(usd, text):
    assert dollars(round(usd * NANOS)) == text


def test_periods_end_with_the_utc_day_and_month():
    assert periods(NOON) == ("2026-11-30", "2026-11")
    assert resets(NOON) == (NOON + 43_200, NOON + 43_200)
    assert resets(NOON + 86_400)[1] - NOON - 43_200 == 31 * 86_400
