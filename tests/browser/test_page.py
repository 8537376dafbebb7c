"""Every page of the operator's side in a real browser, light and dark: it shows what is so, and the console stays empty."""
import asyncio
import os

import pytest

from tests.browser.conftest import PASSWORD
from tests.talk import ask

PAGES = {
    "overview": "Who answered", "live": "Nothing is under way", "requests": "steady-large", "usage": "By model", "logs": "outcome=ok", "providers": "All, in the order in which they are asked",
    "provider/quick": "Models", "explain/best": "best is a combo", "playground": "Nothing asked yet", "config": "What differs from the defaults",
    "combos": "one after the other", "keys": "in the file", "savings": "Nothing was looked up yet", "audit": "Nothing was changed yet",
}


async def theme(browser, name: str) -> None:
    await browser.js("localStorage.setItem('gateway-theme', arguments[0])", name)
    await browser.js("location.reload()")
    await browser.until("document.querySelector('main h1')")
    assert await browser.js("return document.documentElement.dataset.theme") == name


@pytest.mark.parametrize("look", ["light", "dark"])
async def test_every_page_shows_itself_without_a_complaint(browser, house, look):
    base_url = await house()
    await browser.open(base_url + "/admin")
    await browser.until("document.querySelector('main h1')")
    await theme(browser, look)
    for page, words in PAGES.items():
        await browser.js("location.hash = arguments[0]", f"#/{page}")
        await browser.until(f"document.body.innerText.includes({words!r})")
        assert "undefined" not in await browser.text() and "NaN" not in await browser.text()
        assert await browser.js("return document.documentElement.scrollWidth <= innerWidth"), f"{page} is wider than the window"
        await asyncio.sleep(0.15)
        await browser.shot(f"{page.replace('/', '-')}-{look}")


async def test_one_signs_in_and_out(browser, house, password_hash):
    base_url = await house(f'[admin]\npassword_hash = "{password_hash}"\n', traffic=0)
    await browser.open(base_url + "/admin")
    await browser.until("document.querySelector('#password')")
    await browser.shot("sign-in")
    await browser.write("#password", "wrong")
    await browser.click("Sign in")
    await browser.until("document.body.innerText.includes('This is not the password')")
    browser.expect("401")
    await browser.write("#password", PASSWORD)
    await browser.click("Sign in")
    await browser.until("document.querySelector('main h1')?.textContent === 'Overview'")
    assert not await browser.js("return document.cookie")
    await browser.click("Sign out")
    await browser.until("document.querySelector('#password')")


async def test_the_playground_streams_and_says_who_answered(browser, house):
    base_url = await house(traffic=0)
    await browser.open(base_url + "/admin#/playground/m")
    await browser.until("document.querySelector('#play-prompt')")
    await browser.write("#play-prompt", "Hello?")
    await browser.click("Send")
    await browser.until("document.querySelector('.said')?.textContent === 'Hello from quick'")
    text = await browser.text()
    assert "quick/m" in text and "1 moved on before" in text and "flaky/m" in text
    await browser.shot("playground-answer")
    await browser.until("[...document.querySelectorAll('a')].find((a) => a.textContent.startsWith('req_'))")
    await browser.js("[...document.querySelectorAll('a')].find((a) => a.textContent.startsWith('req_')).click()")
    await browser.until("document.querySelectorAll('.waterfall li').length === 2")
    assert "server_error" in await browser.text()
    await browser.shot("request-waterfall")


async def test_what_is_under_way_is_drawn_while_it_goes(browser, house):
    base_url = await house(traffic=0)
    running = asyncio.create_task(ask(base_url, {"model": "slow-one", "messages": [{"role": "user", "content": "hi"}]}, stream=True))
    await browser.open(base_url + "/admin#/live")
    await browser.until("document.querySelector('.waterfall')")
    text = await browser.text()
    assert "slow-one" in text and "slow/slow-one" in text and "running" in text
    await browser.shot("live-running")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await browser.until("document.body.innerText.includes('Nothing is under way')")


async def test_a_key_is_made_and_its_secret_shown_once(browser, house):
    base_url = await house(traffic=0)
    await browser.open(base_url + "/admin#/keys")
    await browser.until("document.querySelector('main h1')?.textContent === 'Client keys'")
    await browser.click("New key")
    await browser.write("#key-name", "phone")
    await browser.write("#key-rpm", "60")
    await browser.shot("keys-form")
    await browser.click("Make the key")
    secret = await browser.until("document.querySelector('dialog .secret')?.textContent")
    await browser.shot("keys-secret")
    answer = await ask(base_url, {"model": "quick/m", "messages": [{"role": "user", "content": "hi"}]}, headers={"Authorization": f"Bearer {secret}"})
    assert answer.status == 200
    await browser.click("Close")
    await browser.until("!document.querySelector('dialog') && document.body.innerText.includes('phone')")
    assert secret not in await browser.js("return document.documentElement.outerHTML")
    await browser.click("Revoke")
    await browser.until("document.querySelector('dialog')")
    await browser.js("[...document.querySelectorAll('dialog button')].at(-1).click()")
    await browser.until("!document.body.innerText.includes('phone') || document.body.innerText.includes('is revoked')")


async def test_a_combo_is_made_and_tried(browser, house):
    base_url = await house(traffic=0)
    await browser.open(base_url + "/admin#/combos")
    await browser.until("document.body.innerText.includes('one after the other')")
    await browser.click("New combo")
    await browser.write("#combo-name", "mine")
    await browser.write("#combo-target-0", "quick/m")
    await browser.click("Add a target")
    await browser.write("#combo-target-1", "steady/m")
    await browser.shot("combos-form")
    await browser.click("Save")
    await browser.until("[...document.querySelectorAll('h2')].some((each) => each.textContent === 'mine')")
    answer = await ask(base_url, {"model": "mine", "messages": [{"role": "user", "content": "hi"}]}, stream=True)
    assert answer.headers["X-Routed-Via"] == "quick/m"
    await browser.js("[...document.querySelectorAll('button')].filter((each) => each.textContent === 'Test').at(-1).click()")
    await browser.until("document.querySelectorAll('tbody tr').length === 2")
    await browser.shot("combos-tested")
    await browser.click("New combo")
    await browser.write("#combo-name", "bad")
    await browser.write("#combo-target-0", "nobody/x")
    await browser.click("Save")
    await browser.until("document.querySelector('.problem')?.textContent.includes('targets[0]')")
    browser.expect("400")


async def test_a_cooldown_is_cleared_by_a_click(browser, house):
    base_url = await house()
    await ask(base_url, {"model": "flaky/m", "messages": [{"role": "user", "content": "hi"}]})
    await browser.open(base_url + "/admin#/providers")
    await browser.until("document.body.innerText.includes('Who rests')")
    await browser.click("Clear")
    await browser.until("!document.body.innerText.includes('Who rests')")


async def test_another_configuration_is_judged_on_the_page(browser, house):
    base_url = await house(traffic=0)
    await browser.open(base_url + "/admin#/config")
    await browser.until("document.body.innerText.includes('What differs')")
    await browser.click("File")
    await browser.until("document.querySelector('pre')?.textContent.includes('[[combos]]')")
    assert "sk-a-1" not in await browser.text()
    await browser.click("Try another")
    await browser.write("#config-text", "[server]\nprot = 1\n")
    await browser.click("Check it")
    await browser.until("document.body.innerText.includes('server.prot')")
    await browser.shot("config-judged")


async def test_a_narrow_window_loses_nothing(browser, house):
    base_url = await house()
    await browser.do(browser.driver.set_window_size, 500, 900)
    try:
        for page in ("overview", "requests", "providers", "playground", "keys", "explain/best"):
            await browser.open(f"{base_url}/admin#/{page}")
            await browser.js("location.reload()")
            await browser.until("document.querySelector('main .stack, main .card, main .columns')")
            assert await browser.js("return document.documentElement.scrollWidth <= innerWidth"), page
            await browser.shot(f"narrow-{page.replace('/', '-')}")
            gap = ("document.querySelector('.foot').getBoundingClientRect().top"
                   " - document.querySelector('nav').lastElementChild.lastElementChild.getBoundingClientRect().bottom")
            assert await browser.js(f"return {gap}") < 30, f"{page}: the navigation is stretched"
            assert await browser.js("return [...document.querySelectorAll('datalist')].every((each) => !each.offsetHeight)")
    finally:
        await browser.do(browser.driver.set_window_size, 1360, 900)


async def test_without_the_charts_module_there_are_tables(browser, house, monkeypatch):
    from gateway.admin import files
    bare = {name: file for name, file in files.found().items() if not name.startswith("vendor/")}
    monkeypatch.setattr(files, "found", lambda: bare)
    base_url = await house()
    await browser.open(base_url + "/admin#/overview")
    await browser.js("location.reload()")
    await browser.until("document.querySelectorAll('.chart table').length >= 4")
    assert not await browser.js("return document.querySelectorAll('canvas').length")
    await browser.shot("overview-tables")


async def test_where_charts_are_installed_they_can_be_read_as_tables(browser, house):
    base_url = await house()
    await browser.open(base_url + "/admin#/overview")
    await browser.js("location.reload()")
    await browser.until("document.querySelector('.chart')")
    if not await browser.js("return document.querySelectorAll('canvas').length"):
        assert os.environ.get("GATEWAY_TEST_REQUIRE") != "all", "scripts/page installs uPlot"
        pytest.skip("uPlot is not installed (scripts/page)")
    await browser.click("Table")
    await browser.until("document.querySelectorAll('.chart table').length === 1 + document.querySelectorAll('.u-legend').length "
                        "|| document.querySelectorAll('.chart .scroll table').length === 1")


async def test_a_refresh_takes_neither_focus_nor_words_from_who_types(browser, house):
    base_url = await house()
    await browser.open(base_url + "/admin#/providers")
    await browser.until("document.querySelector('#provider-filter')")
    await browser.write("#provider-filter", "qui")
    assert await browser.js("return document.activeElement.id") == "provider-filter"
    await browser.until("document.querySelectorAll('main tbody tr').length === 1 || document.body.innerText.includes('Who rests')")
    asked = await browser.js("return performance.getEntriesByType('resource').filter((each) => each.name.endsWith('/providers')).length")
    await browser.until(f"performance.getEntriesByType('resource').filter((each) => each.name.endsWith('/providers')).length > {asked}", 12)
    assert await browser.js("return [document.activeElement.id, document.activeElement.value]") == ["provider-filter", "qui"]
