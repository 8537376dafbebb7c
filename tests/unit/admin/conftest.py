"""A gateway with an operator's side, and somebody who asks it."""
import json
from typing import Any

import aiohttp
import pytest

from gateway.policy import passwords

PASSWORD = "correct horse"
ADMIN_KEY = "adm-0123456789abcdef"


@pytest.fixture(scope="session")
def password_hash() -> str:
    return passwords.hashed(PASSWORD)


class Answer:
    """A whole answer."""

    def __init__(self, status: int, headers: Any, body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return self.json["error"]["code"]


class Operator:
    """Asks the API below one address; cookies are kept like a browser does."""

    def __init__(self, base_url: str, session: aiohttp.ClientSession) -> None:
        self.base_url = base_url
        self.session = session
        self.headers = {"X-Gateway-Admin": "1"}

    async def ask(self, method: str, path: str, *, headers: dict[str, str] | None = None, **more: Any) -> Answer:
        where = self.base_url + ("/admin/api" + path if not path.startswith("/admin") else path)
        async with self.session.request(method, where, headers=self.headers if headers is None else headers, **more) as reply:
            return Answer(reply.status, reply.headers, await reply.read())

    async def get(self, path: str, **more: Any) -> Answer:
        return await self.ask("GET", path, **more)

    async def post(self, path: str, body: Any = None, **more: Any) -> Answer:
        return await self.ask("POST", path, json={} if body is None else body, **more)


@pytest.fixture
def operator(gateway, stack):
    """``await operator(toml)``: the gateway with this configuration, and its operator."""
    async def start(config: str) -> Operator:
        base_url = await gateway(config)
        jar = aiohttp.CookieJar(unsafe=True)
        session = await stack.enter_async_context(aiohttp.ClientSession(cookie_jar=jar))
        return Operator(base_url, session)
    return start


def admin(**values: str) -> str:
    """The [admin] table; values are TOML."""
    return "[admin]\n" + "".join(f"{name} = {value}\n" for name, value in values.items())
