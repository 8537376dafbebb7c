"""A text that broke off and what another model adds to it make one text: nothing twice, nothing missing, or it is told."""
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.stream.resume import ANCHOR_CHARS, LEAST, Joint, Strayed, anchor, squeezed

TEXT = ("The sky is blue because air scatters short waves more than long ones.\n\n- Blue light is scattered ten times as much as red.\n"
        "- At  sunset the way is longer, so the blue is gone.\n\nThat is all there is to it: \"Rayleigh\" found it in 1871.")


def joined(sent, comes, n=7, **how):
    joint = Joint(sent, **how)
    pieces = [joint.feed(comes[i:i + n]) for i in range(0, len(comes), n)]
    return sent + "".join(pieces) + joint.end()


WAYS = {
    "prefilled": lambda sent: (TEXT[len(sent):], {"asked": False}),
    "prefilled without the blanks at the end": lambda sent: (TEXT[len(sent.rstrip()):], {"asked": False, "bare": True}),
    "repeats the last words": lambda sent: (anchor(sent) + TEXT[len(sent.rstrip()):], {"asked": True}),
    "repeats all of it": lambda sent: (TEXT, {"asked": True}),
    "a blank first": lambda sent: ("\n" + anchor(sent) + TEXT[len(sent.rstrip()):], {"asked": True}),
    "simply goes on": lambda sent: (TEXT[len(sent):], {"asked": True}),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", [1, 7, 1000])
def test_cut_at_every_character_it_is_one_text(way, n):
    for cut in range(1, len(TEXT) + 1):
        sent = TEXT[:cut]
        comes, how = WAYS[way](sent)
        assert joined(sent, comes, n, **how) == TEXT, cut


@settings(max_examples=150, deadline=None)
@given(text=st.text(st.sampled_from("ab \n.-é"), min_size=2, max_size=120), data=st.data())
def test_whoever_repeats_what_was_asked_is_joined_whatever_the_text(text, data):
    text = text.strip() + "!END"
    cut = data.draw(st.integers(1, len(text) - 1))
    sent = text[:cut]
    if sent.strip():
        assert joined(sent, sent + text[cut:], asked=True) == text
        rest = squeezed(text[cut:]).lstrip()
        if not rest.startswith(squeezed(sent).strip()[:LEAST]):
            assert joined(sent, text[cut:], asked=False) == text


def test_other_blanks_are_the_same_blanks():
    assert joined("one two\n\nthree fo", "one  two\nthree four five", asked=True) == "one two\n\nthree four five"


@pytest.mark.parametrize("comes", [
    "I'm sorry for the interruption. The sky is", "Sure! Here is the rest:", "Here's the continuation: more than",
    "Apologies, the connection broke.", "The sky is blue since the air, as is well known, is a gas", "Let me continue from there."])
def test_who_does_not_go_on_is_found_out(comes):
    for n in (1, 200):
        with pytest.raises(Strayed):
            joined(TEXT[:40], comes, n, asked=True)
    with pytest.raises(Strayed):
        joined(TEXT[:40], comes, asked=False)


def test_a_quoted_apology_may_follow_a_colon():
    assert joined("She said: ", "I'm sorry for all that has happened here in these years.", asked=False).endswith("years.")


def test_little_is_held_of_what_goes_on():
    joint = Joint(TEXT[:40], asked=True)
    assert joint.feed(anchor(TEXT[:40]) + " air") and joint.decided
    joint = Joint(TEXT[:40], asked=True)
    held = 0
    while not joint.decided:
        joint.feed("zyxw ")
        held += 5
    assert held < 100


def test_the_end_that_is_asked_for_is_of_whole_words_and_short():
    assert anchor("  Hi ") == "Hi"
    found = anchor(TEXT[:60 * 3])
    assert len(found) <= ANCHOR_CHARS and TEXT[:60 * 3].rstrip().endswith(found) and ("\n" + found) in TEXT
    assert anchor("x" * 500) == "x" * ANCHOR_CHARS


def test_a_text_of_one_letter_ends_the_search():
    assert joined("x" * 20_000, "y" + "x" * 100, asked=True).endswith("y" + "x" * 100)
    assert joined("x" * 20_000, "x" * 20_000 + "y", 500, asked=True) == "x" * 20_000 + "y"
