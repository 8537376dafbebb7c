"""A real gateway and scripted upstreams on free ports, for every test that wants one; the event loop that GATEWAY_LOOP names."""
import asyncio
import importlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack

import pytest

from gateway.cli.loop import factory
from gateway.core.clock import Clock
from gateway.mock.upstream import Answering, Upstream
from gateway.upstream.aiohttp_transport import AiohttpTransport
from tests import postgres
from tests.transports import CHOSEN

KEY = "gw-test-key"

StartGateway = Callable[..., Awaitable[str]]
StartUpstream = Callable[..., Awaitable[Upstream]]


def pytest_asyncio_loop_factories(config, item):
    """uvloop as in service; GATEWAY_LOOP=asyncio runs the same tests on the standard loop."""
    return {"loop": factory() or asyncio.new_event_loop}


def pytest_runtest_setup(item):
    """A marked test is skipped where what it needs is missing, unless everything is demanded."""
    if not item.get_closest_marker("real"):
        return
    try:
        importlib.import_module("xllamacpp")
    except ImportError as missing:               # not installed, or its libgomp.so.1 is not
        if os.environ.get("GATEWAY_TEST_REQUIRE") == "all":
            pytest.fail(f"GATEWAY_TEST_REQUIRE=all demands llama.cpp's server: {missing}", pytrace=False)
        pytest.skip(f"no real inference server: {missing}")


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    """What is entered here is left at the end of the test, last first."""
    async with AsyncExitStack() as held:
        yield held


@pytest.fixture
def upstream(stack) -> StartUpstream:
    """``await upstream(answer)``: a scripted upstream that runs; see gateway.mock.upstream for what an answer is."""
    async def start(answer: Answering) -> Upstream:
        return await stack.enter_async_context(Upstream(answer))
    return start


@pytest.fixture(scope="session")
def pg_server() -> Iterator[str]:
    """The address of a PostgreSQL server, started when the first test wants it; tests.postgres.schema makes an empty place there."""
    postgres.required()
    with postgres.server() as address:
        yield address


class Unread:
    """Access lines that nobody wants to see between dots."""

    def put(self, line: str) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def gateway(stack, tmp_path, monkeypatch) -> StartGateway:
    """``await gateway(toml)``: the real server on a free port with this configuration; returns its address.

    The same parts in the same order as `gateway serve`, but in the test's own loop. The listener is left in ``start.listener``.
    ``clock`` may be one that the test puts forward.
    """
    from gateway.config.load import load
    from gateway.server.listen import listen

    monkeypatch.setattr("gateway.observe.access.LineWriter", Unread)
    if CHOSEN == "aiohttp":
        # One for each gateway: a test may start a second one after the first has closed its own.
        monkeypatch.setattr("gateway.server.compose.network", lambda: (AiohttpTransport(),) * 2)

    async def start(config: str, clock: Clock | None = None) -> str:
        file = tmp_path / "gateway.toml"
        file.write_text(config, encoding="utf-8")
        listener = await listen(load(file, {}), "127.0.0.1", 0, clock=clock)
        stack.push_async_callback(listener.close, 0)
        start.listener = listener
        return f"http://127.0.0.1:{listener.port}"
    return start


def provider(up: Upstream | str, name: str = "up", models: str = '["m"]', keys: str = '["sk-up-1"]', **more: str) -> str:
    """One ``[[providers]]`` table; values in ``more`` are TOML."""
    address = up if isinstance(up, str) else up.base_url
    lines = [f'id = "{name}"', f'base_url = "{address}"', f"models = {models}", f"api_keys = {keys}",
             *(f"{key} = {value}" for key, value in more.items())]
    return "[[providers]]\n" + "\n".join(lines) + "\n"


def client_key(name: str = "test", key: str = KEY, **more: str) -> str:
    """One ``[[auth.keys]]`` table."""
    lines = [f'name = "{name}"', f'key = "{key}"', *(f"{field} = {value}" for field, value in more.items())]
    return "[[auth.keys]]\n" + "\n".join(lines) + "\n"
