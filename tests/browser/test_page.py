"""Every page of the operator's side in a real browser, light and dark: it shows what is so, and the console stays empty."""
import asyncio

import pytest

PAGES = {
    "overview": "Who answered", "live": "Nothing is under way", "requests": "steady-large", "usage": "By model", "logs": "outcome=ok", "providers": "All, in the order in which they are asked",
    "provider/quick": "Models", "explain/best": "best is a combo", "playground": "Nothing asked yet", "config": "What differs from the defaults",
    "combos": "one after the other", "keys": "in the file", "audit": "Nothing was changed yet",
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
