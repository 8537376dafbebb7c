"""What is deployed beside the gateway asks for metrics and labels that exist, and leaves none out."""
import json
import re

import pytest

from gateway.observe.families import FAMILIES
from tests.arch.source import ROOT

DEPLOY = ROOT / "scripts" / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana.json").read_text(encoding="utf-8"))
ALERTS = (DEPLOY / "alerts.yml").read_text(encoding="utf-8")
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
RULES = {name: re.findall(r"^        expr: (.+)$", body, re.M) for name, body in
         re.findall(r"^      - alert: (\w+)\n((?:        .*\n|\n)+)", ALERTS + "\n", re.M)}
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]] + [expr for found in RULES.values() for expr in found]
SCRAPED = {"job", "instance"}


def family(name):
    return name if name in FAMILIES else re.sub("_(bucket|sum|count)$", "", name)


def used(expression):
    """(metric, labels that its selector names) of an expression."""
    for name, selector in re.findall(r"\b((?:gateway|process)_\w+)(?:\{([^}]*)\})?", re.sub(r'"[^"]*"', '""', expression)):
        yield name, set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector))


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_names_metrics_and_labels_that_exist(expression):
    found = list(used(expression))
    known = {"le"}.union(SCRAPED, *(FAMILIES[family(name)].labels for name, _ in found))
    for name, labels in found:
        assert family(name) in FAMILIES and labels <= {*FAMILIES[family(name)].labels, *SCRAPED}
        assert (name != family(name)) == (FAMILIES[family(name)].kind == "histogram")
        if FAMILIES[family(name)].kind == "counter":
            assert re.search(rf"(rate|increase)\({name}", expression)
    for grouped in re.findall(r"\bby \(([^)]*)\)", expression):
        assert {label.strip() for label in grouped.split(",")} <= known
    assert expression.count("(") == expression.count(")") and expression.count("{") == expression.count("}")


def test_every_metric_is_on_the_dashboard():
    shown = {family(name) for panel in PANELS for target in panel["targets"] for name, _ in used(target["expr"])}
    assert shown == set(FAMILIES)


def test_panels_have_names_of_their_own_and_do_not_overlap():
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    taken = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells


def test_legends_name_labels_of_their_expression():
    for panel in PANELS:
        for target in panel["targets"]:
            assert all(re.search(rf"by \([^)]*\b{label}\b", target["expr"])
                       for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])), panel["title"]


def test_every_alert_says_how_bad_it_is_and_what_it_means():
    blocks = re.split(r"^      - alert: ", ALERTS, flags=re.M)[1:]
    assert len(blocks) == len(RULES) >= 10 and all(len(found) == 1 for found in RULES.values())
    for block in blocks:
        assert re.search(r"^          severity: (warning|critical)$", block, re.M), block
        assert re.search(r"^          summary: \S", block, re.M) and re.search(r"^          description: \S.*\.$|\?$", block, re.M), block


def test_the_rules_are_yaml_that_prometheus_reads():
    yaml = pytest.importorskip("yaml")
    rules = yaml.safe_load(ALERTS)["groups"][0]["rules"]
    assert [rule["alert"] for rule in rules] == list(RULES)
    for rule in rules:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"} and isinstance(rule["expr"], str)
        assert set(rule["annotations"]) == {"summary", "description"}
