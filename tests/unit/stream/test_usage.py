"""One usage a turn, whatever the upstream says and when."""
from gateway.core.events import Usage
from gateway.stream import usage


def test_the_last_word_wins_with_its_frame() -> None:
    last = Usage(10, 7, total=17, raw=b"{}")
    assert usage.merge(Usage(10, 3, total=13), last) is last


def test_the_first_word_is_taken_as_it_is() -> None:
    first = Usage(0, 0)
    assert usage.merge(None, first) is first


def test_a_zero_never_replaces_a_number() -> None:
    merged = usage.merge(Usage(input=25, output=1, cached=5, total=26), Usage(input=0, output=9, total=9))
    assert (merged.input, merged.output, merged.cached, merged.total) == (25, 9, 5, 34)


def test_without_a_word_it_is_estimated_and_says_so() -> None:
    made = usage.settle(None, 11, 9, 5)
    assert made == Usage(input=11, output=5, reasoning=2, total=16, estimated=True)


def test_all_zeros_beside_an_answer_are_no_word() -> None:
    assert usage.settle(Usage(), 11, 4, 0).estimated


def test_all_zeros_of_an_empty_turn_stand() -> None:
    said = Usage()
    assert usage.settle(said, 11, 0, 0) is said
