"""The page is plain modules: short, each says what it answers, nothing that a strict policy would refuse, nothing of others committed."""
import json
import re

import pytest

from tests.arch.source import PACKAGE, ROOT, name, tracked

PAGE = PACKAGE / "admin" / "page"
OURS = [path for path in sorted(PAGE.rglob("*")) if path.suffix in (".js", ".css") and "vendor" not in path.parts]
# What needs unsafe-inline or unsafe-eval, or makes markup of text.
REFUSED = re.compile(r"\beval\(|new Function|innerHTML|outerHTML|insertAdjacentHTML|document\.write|setAttribute\(\"(?:style|on)|javascript:")


@pytest.mark.parametrize("path", OURS, ids=name)
def test_a_module_of_the_page_is_short_and_says_what_it_answers(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 400
    assert re.match(r"/\*\*? .*\?", text), "the first comment says which question this file answers"
    assert not REFUSED.search(text)


def test_every_view_is_in_the_table_and_in_a_group():
    table = (PAGE / "views.js").read_text(encoding="utf-8")
    files = {path.stem for path in (PAGE / "views").glob("*.js")}
    assert set(re.findall(r'"\./views/(\w+)\.js"', table)) == files
    offered = set(re.findall(r'"(\w+)"', table[table.index("GROUPS"):]))
    within = {path.stem for path in (PAGE / "views").glob("*.js") if "within:" in path.read_text(encoding="utf-8")}
    assert files - within <= offered


def test_the_page_has_no_inline_script_or_style():
    html = (PAGE / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|style=|\son\w+=|<script(?![^>]*\ssrc=)", html)


def test_what_others_wrote_is_locked_and_not_committed():
    assert not [name(path) for path in tracked() if "vendor" in path.parts or "node_modules" in path.parts]
    lock = json.loads((ROOT / "scripts" / "deploy" / "page" / "package-lock.json").read_text(encoding="utf-8"))
    wanted = json.loads((ROOT / "scripts" / "deploy" / "page" / "package.json").read_text(encoding="utf-8"))["dependencies"]
    for package, version in wanted.items():
        locked = lock["packages"][f"node_modules/{package}"]
        assert locked["version"] == version and locked["integrity"].startswith("sha512-")
