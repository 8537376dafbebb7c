"""A headless Chromium, and a house full of life for it to look at."""
import asyncio
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.core.call import Attempt, Call
from gateway.core.errors import GatewayError
from gateway.core.events import Usage
from gateway.mock import script as say
from gateway.policy import passwords
from tests.conftest import client_key, provider
from tests.talk import ask

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--force-device-scale-factor=1", "--disable-dev-shm-usage")


def chromium() -> tuple[str, str]:
    """(browser, driver); skips where one is missing, unless everything is demanded."""
    try:
        import selenium  # noqa: F401
        missing = ""
    except ImportError:
        missing = "selenium"
    browser, driver = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
    missing = missing or ("" if browser else "chromium") or ("" if driver else "chromedriver")
    if missing:
        if os.environ.get("GATEWAY_TEST_REQUIRE") == "all":
            pytest.fail(f"GATEWAY_TEST_REQUIRE=all demands {missing} (Debian: chromium, chromium-driver)", pytrace=False)
        pytest.skip(f"no {missing}")
    return str(browser), str(driver)


PASSWORD = "correct horse"


@pytest.fixture(scope="session")
def password_hash() -> str:
    return passwords.hashed(PASSWORD)


class Browser:
    """One window. Every call runs in a thread, so that the gateway in this loop can answer."""

    def __init__(self, driver: Any, shots: Path | None) -> None:
        self.driver = driver
        self.shots = shots
        self.expected: list[str] = []

    async def do(self, work: Any, *given: Any) -> Any:
        return await asyncio.to_thread(work, *given)

    async def open(self, url: str) -> None:
        await self.do(self.driver.get, url)

    async def js(self, script: str, *given: Any) -> Any:
        return await self.do(self.driver.execute_script, script, *given)

    async def until(self, condition: str, within_s: float = 10.0) -> Any:
        """The value of a JavaScript expression, once it is true."""
        async with asyncio.timeout(within_s):
            while not (value := await self.js(f"return ({condition})")):
                await asyncio.sleep(0.05)
        return value

    async def click(self, words: str) -> None:
        """The button or link with these words."""
        found = await self.js("const all = [...document.querySelectorAll('button,a')]; "
                              "return all.find((each) => each.textContent.trim() === arguments[0])", words)
        assert found is not None, f"nothing says {words!r}"
        await self.do(found.click)

    async def write(self, selector: str, text: str) -> None:
        from selenium.webdriver.common.by import By
        found = await self.do(self.driver.find_element, By.CSS_SELECTOR, selector)
        await self.do(found.clear)
        await self.do(found.send_keys, text)

    async def text(self) -> str:
        return str(await self.js("return document.body.innerText"))

    async def shot(self, name: str) -> None:
        """Kept for people to look at, where GATEWAY_SCREENSHOTS names a folder."""
        if self.shots is not None:
            await self.do(self.driver.save_screenshot, str(self.shots / f"{name}.png"))

    def expect(self, status: str) -> None:
        """The browser writes refusals that we answered on purpose into the console."""
        self.expected.append(f"status of {status}")

    def complaints(self) -> list[str]:
        """What the console holds above a remark; CSP reports are there as well."""
        said = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        return [message for message in said if not any(words in message for words in self.expected)]


@pytest.fixture(scope="session")
def window(tmp_path_factory) -> Iterator[Browser]:
    browser, driver = chromium()
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}", "--window-size=1360,900"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(executable_path=driver))
    started.set_page_load_timeout(20)
    shots = os.environ.get("GATEWAY_SCREENSHOTS")
    if shots:
        Path(shots).mkdir(parents=True, exist_ok=True)
    yield Browser(started, Path(shots) if shots else None)
    started.quit()


@pytest.fixture
def browser(window) -> Iterator[Browser]:
    """The window with an empty console; a test that leaves a complaint there fails."""
    window.expected.clear()
    window.complaints()
    yield window
    # The gateway of the test has ended by now; what the page still wanted of it is no complaint about the page.
    found = [said for said in window.complaints() if "ERR_CONNECTION_REFUSED" not in said]
    assert not found


def history(series: Any) -> None:
    """An hour that went by, so that curves have something to show: a hiccup of one provider in the middle."""
    now = time.time()
    for minute in range(58, 0, -1):
        for n in range(3 + minute % 7):
            bad = 22 < minute < 32 and n % 2 == 0
            tried = [Attempt(label="flaky/m", provider="flaky", model="m", key=1, started=0.0, ended=0.2,
                             error=GatewayError("server_error" if n else "timeout", "down"))] if bad else []
            who = ("quick", "steady", "flaky")[n % 3 if not bad else n % 2]
            took = 0.9 + (minute * 7 + n * 3) % 11 * 0.21 + bad * 1.5
            answered = Attempt(label=f"{who}/m", provider=who, model="m", key=1, started=0.2, ended=took)
            lost = bad and n == 4
            series.add(Call(id="x", surface="chat", wire="openai-chat", operation="chat", started=0.0, wall=now - minute * 60, ended=took,
                            attempts=[*tried] if lost else [*tried, answered], routed="" if lost else f"{who}/m", first_token_at=took / 4,
                            outcome="failed" if lost else "ok", usage=Usage(input=900 + n * 40, output=120 + n * 9, cached=300),
                            cost_usd=0.0021 + n * 0.0003))


CONFIG = """
[[combos]]
name = "best"
strategy = "priority"
targets = ["quick/m", "steady/m", {target = "flaky/m", weight = 2}]
[routing]
max_attempts = 5
"""


@pytest.fixture
async def house(gateway, upstream):
    """``await house()``: a gateway with four providers of different luck, after some traffic; ``.upstreams`` by name."""
    async def start(more: str = "", traffic: int = 12) -> str:
        quick = await upstream(say.stream("Hello ", "from ", "quick", delay_s=0.01))
        steady = await upstream(say.stream("Hello ", "from steady", delay_s=0.02))
        flaky = await upstream([say.error(500), say.error(429, headers={"Retry-After": "900"}), say.stream("Hello from flaky")])
        slow = await upstream(say.hang())
        ups = {"flaky": flaky, "quick": quick, "steady": steady, "slow": slow}
        price = '[{id = "m", context = 128000, max_output = 8192, tools = true, vision = true, price = {input = 2.5, output = 10.0}}]'
        base_url = await gateway(client_key() + provider(flaky, "flaky") + provider(quick, "quick", models=price, keys='["sk-a-1", "sk-a-2"]')
                                 + provider(steady, "steady", models='["m", "steady-large"]') + provider(slow, "slow", models='["slow-one"]')
                                 + CONFIG + more)
        history(gateway.listener.parts.series)
        for n in range(traffic):
            model = ("m", "best", "quick/m", "steady-large")[n % 4]
            await ask(base_url, {"model": model, "messages": [{"role": "user", "content": "hi"}]}, stream=n % 3 > 0)
        await ask(base_url, {"model": "nobody-serves-this", "messages": []})
        start.upstreams = ups
        return base_url
    return start
