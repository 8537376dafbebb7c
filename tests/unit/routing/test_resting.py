"""The book of cooldowns drops what has ended, whatever was lengthened, taken back or forgotten in between."""
from gateway.routing.cooldown import Cooldown
from gateway.routing.resting import SLACK, Cooldowns

A, B, C = ("a", "m", ""), ("b", "m", ""), ("c", "m", "")


def until(end):
    return Cooldown(end, "server_error", "heuristic", 0.0)


def book(**ends):
    made = Cooldowns(100)
    for name, end in ends.items():
        made.begin((name, "m", ""), until(end))
    return made


def test_who_rests_is_who_has_not_ended():
    cooldowns = book(a=10.0, b=30.0, c=20.0)
    assert cooldowns.running(5.0) == {A, B, C}
    assert cooldowns.running(10.0) == {B, C}
    assert cooldowns.running(25.0) == {B}
    assert not cooldowns.running(30.0)
    assert not cooldowns


def test_a_lengthened_cooldown_ends_at_its_new_end():
    cooldowns = book(a=10.0)
    cooldowns.begin(A, until(50.0))
    assert cooldowns.running(20.0) == {A}
    assert not cooldowns.running(50.0)


def test_what_was_taken_back_rests_no_more_and_may_rest_again():
    cooldowns = book(a=10.0, b=20.0)
    del cooldowns[A]
    assert cooldowns.running(1.0) == {B}
    cooldowns.begin(A, until(15.0))
    assert cooldowns.running(12.0) == {A, B}
    assert cooldowns.running(15.0) == {B}


def test_a_view_goes_along_with_what_changes():
    cooldowns = book(a=10.0)
    seen = cooldowns.running(1.0)
    cooldowns.begin(B, until(10.0))
    assert not seen.isdisjoint([B])


def test_the_ends_are_bounded_like_the_book():
    cooldowns = Cooldowns(10)
    for n in range(1_000):
        cooldowns.begin((f"p{n % 20}", "m", ""), until(1000.0 + n))
        assert len(cooldowns) <= 10
        assert len(cooldowns._ends) <= 2 * 10 + SLACK
    assert len(cooldowns.running(1995.0)) == 4


def test_a_look_costs_nothing_for_those_who_still_rest():
    cooldowns = Cooldowns(5_000)
    for n in range(4_000):
        cooldowns.begin((f"p{n}", "m", ""), until(1000.0 + n))
    waiting = len(cooldowns._ends)
    cooldowns.running(1001.0)
    assert waiting - len(cooldowns._ends) == 2, "two ended, two were looked at"
