"""The table of failures covers every kind, and agrees with contract 7."""
import pytest

from gateway.core.errors import KINDS
from gateway.routing.outcomes import BUSY_KINDS, OUTCOMES, QUOTA_KINDS, REFUSED_KINDS

UPSTREAM = [kind for kind, facts in KINDS.items() if facts[0] == "upstream"]


def test_every_kind_has_a_row():
    assert set(OUTCOMES) == set(KINDS)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in UPSTREAM] + ["rejected", "exhausted"])
def test_what_is_not_the_upstreams_fault_ends_the_request_and_cools_nobody(kind):
    outcome = OUTCOMES[kind]
    assert (outcome.moves_on, outcome.skip, outcome.rule, outcome.counts) == (False, "none", "none", False)


@pytest.mark.parametrize("kind", [kind for kind in UPSTREAM if kind not in ("rejected", "exhausted")])
def test_every_other_failure_of_an_upstream_moves_on_and_leaves_it_out(kind):
    assert OUTCOMES[kind].moves_on
    assert OUTCOMES[kind].skip != "none"


@pytest.mark.parametrize("kind", ["context_too_large", "unsupported", "format_ignored", "invalid_tool_arguments",
                                  "truncated_json", "unparseable_dialect", "empty_length"])
def test_a_request_that_does_not_fit_is_no_matter_of_health(kind):
    assert (OUTCOMES[kind].rule, OUTCOMES[kind].counts) == ("none", False)


@pytest.mark.parametrize("kind", sorted(QUOTA_KINDS | {"auth"}))
def test_a_fact_of_one_account_does_not_count_against_the_model(kind):
    assert not OUTCOMES[kind].counts
    assert OUTCOMES[kind].skip in ("key", "account")


def test_the_groups_name_known_kinds():
    assert set(UPSTREAM) >= QUOTA_KINDS | BUSY_KINDS | REFUSED_KINDS
