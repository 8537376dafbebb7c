"""A value has one placeholder in a request, and comes back exactly."""
import json

from gateway.policy.guardrails import pii
from gateway.policy.guardrails.masks import Masks

KINDS = tuple(pii.KINDS.values())
NAMES = [kind.name for kind in KINDS]


def test_the_same_value_has_the_same_placeholder_and_another_one_another():
    masks = Masks(KINDS, restores=NAMES)
    assert masks.mask("a@x.io b@x.io a@x.io") == "[EMAIL_1] [EMAIL_2] [EMAIL_1]"
    assert masks.mask("4111111111111111") == "[CREDIT_CARD_1]"
    assert masks.n == {"EMAIL": 3, "CREDIT_CARD": 1}
    assert masks.leaving("[EMAIL_2], [EMAIL_1], [EMAIL_3]", 0, True, False)[0] == "b@x.io, a@x.io, [EMAIL_3]"


def test_what_the_caller_wrote_like_a_placeholder_stays_what_it_is():
    masks = Masks(KINDS, restores=NAMES)
    masks.reserve(["see [EMAIL_1]"])
    assert masks.mask("a@x.io") == "[EMAIL_2]"
    assert masks.leaving("[EMAIL_1] [EMAIL_2]", 0, True, False)[0] == "[EMAIL_1] a@x.io"


def test_others_values_are_hidden_in_answers_and_the_caller_s_own_are_not():
    masks = Masks(KINDS, KINDS, NAMES)
    masks.mask("a@x.io")
    assert masks.leaving("[EMAIL_1] a@x.io c@x.io c@x.io", 0, True, False)[0] == "a@x.io a@x.io [EMAIL_2] [EMAIL_2]"
    assert masks.leaving("[EMAIL_1] c@x.io", 0, True, True)[0] == "[EMAIL_1] [EMAIL_2]", "thoughts keep placeholders"
    assert masks.said == {"EMAIL": 3}


def test_without_restoring_everything_stays_hidden():
    masks = Masks(KINDS, KINDS)
    masks.mask("a@x.io")
    assert masks.leaving("[EMAIL_1] a@x.io", 0, True, False)[0] == "[EMAIL_1] [EMAIL_1]"


def test_arguments_stay_json_whatever_is_in_them():
    masks = Masks(KINDS, KINDS, NAMES)
    assert json.loads(masks.mask_json('{"card": 4111111111111111, "to": ["x\\na@x.io"], "n": 3}')) == {
        "card": "[CREDIT_CARD_1]", "to": ["x\n[EMAIL_1]"], "n": 3}
    back = masks.arguments('{"to": "[EMAIL_1]", "say": "\\u005bEMAIL_1\\u005d", "cc": "c@x.io"}')
    assert json.loads(back) == {"to": "a@x.io", "say": "a@x.io", "cc": "[EMAIL_2]"}
    untouched = '{ "a" : 1.50 }'
    assert masks.arguments(untouched) is untouched
    assert masks.arguments('{"to": "[EMAIL_1]"') == '{"to": "a@x.io"', "cut off, so a text"


def test_what_was_told_can_be_hidden_again():
    masks = Masks(KINDS, restores=NAMES)
    masks.mask("a@x.io and aa@x.io")
    assert masks.hidden("I wrote to aa@x.io, a@x.io") == "I wrote to [EMAIL_2], [EMAIL_1]"
