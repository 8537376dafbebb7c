"""Do the settings of [routing] go together? What would be without effect is said."""
from gateway.config.problems import Problems
from gateway.config.schema import Config


def check(config: Config, problems: Problems) -> None:
    """Warnings, and what cannot be meant."""
    table = config.routing
    if table.hedge == "race":
        if not table.hedge_share:
            problems.add("routing.hedge_share", 'is 0, so nobody would be asked twice; write a share such as 0.1, or hedge = "off"')
        if table.budget_s and table.hedge_after_s >= table.budget_s:
            problems.warn("routing.hedge_after_s", f"is not shorter than budget_s ({table.budget_s:g}): most would come too late")
    elif table.hedge_after_s:
        problems.warn("routing.hedge_after_s", 'has no effect without hedge = "race"')
    if table.budget_s and table.wait_s > table.budget_s:
        problems.warn("routing.wait_s", f"is longer than budget_s ({table.budget_s:g}), which ends every wait")
