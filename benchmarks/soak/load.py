"""What is asked of the gateway, and was the answer one? Every surface, among clients that leave, err or dawdle."""
import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import aiohttp
import msgspec
from yarl import URL

KEY = "gw-soak-key"
SAY = "How are you? " * 20
_DIALOGUE = [{"role": "user", "content": SAY}]


class Asking(msgspec.Struct, frozen=True):
    """A surface: ``end`` is in every whole stream, ``failed`` in every one that was told to have failed."""
    path: str
    body: dict[str, Any]
    end: bytes
    failed: bytes = b'"error"'
    streamed: str = ""


ASKING = (
    Asking("/v1/chat/completions", {"messages": _DIALOGUE}, b"data: [DONE]"),
    Asking("/v1/completions", {"prompt": SAY}, b"data: [DONE]"),
    Asking("/v1/responses", {"input": SAY}, b"response.completed", b"response.failed"),
    Asking("/v1/messages", {"messages": _DIALOGUE, "max_tokens": 200}, b"message_stop"),
    Asking("/v1beta/models/{model}:generateContent", {"contents": [{"role": "user", "parts": [{"text": SAY}]}]}, b'"finishReason"',
           streamed="/v1beta/models/{model}:streamGenerateContent?alt=sse"),
    Asking("/api/chat", {"messages": _DIALOGUE}, b'"done":true'),
)
WRONG = (
    ("/v1/chat/completions", b'{"model": "m1", "messages": ['), ("/v1/messages", b"[]"), ("/v1/responses", b'{"input": 7}'),
    ("/v1/chat/completions", b'{"model": "nobody/serves-this", "messages": [{"role": "user", "content": "x"}]}'),
    ("/v1/nowhere", b"{}"),
)
LOOKS = ("/metrics", "/v1/models", "/readyz", "/admin/api/overview", "/admin/api/requests", "/admin/api/live", "/admin/api/providers")


class Load:
    """Clients until ``stop``; ``seen`` counts outcomes, ``wrong`` holds the first answers that are none."""

    def __init__(self, base_url: str, seed: int, models: int) -> None:
        self._url = base_url
        self._models = models
        self._dice = Random(seed)
        self.seen: Counter[str] = Counter()
        self.wrong: list[str] = []
        # a look and a mistake now and then, somebody who leaves in each ten
        self._acts: tuple[tuple[Callable[[aiohttp.ClientSession], Awaitable[None]], int], ...] = (
            (self._turn, 75), (self._leave, 10), (self._mistake, 7), (self._look, 5), (self._dawdle, 3))

    async def run(self, clients: int, pause_s: float) -> None:
        """Ends by being cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(self._client(pause_s))

    async def _client(self, pause_s: float) -> None:
        acts, weights = zip(*self._acts, strict=True)
        while True:                                  # a session of ten acts, then connections anew
            async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as session:
                for _ in range(10):
                    try:
                        await self._dice.choices(acts, weights)[0](session)
                    except (aiohttp.ClientError, OSError) as error:
                        self._bad(f"{type(error).__name__}: {error}")
                    await asyncio.sleep(pause_s * self._dice.random() * 2)

    def _bad(self, text: str) -> None:
        self.seen["bad"] += 1
        if len(self.wrong) < 20:
            self.wrong.append(text[:400])

    def _post(self, session: aiohttp.ClientSession, ask: Asking, stream: bool) -> Any:
        body, n = dict(ask.body), self._dice.randrange(self._models)
        model = self._dice.choice((f"best{n}", f"best{n}", f"m{n}", f"a/m{n}"))
        if not ask.streamed:
            body |= {"model": model, "stream": stream}
        headers = {"X-FreeLLM-Cache": "on"} if self._dice.random() < 0.1 else {}
        path = (ask.streamed if stream and ask.streamed else ask.path).replace("{model}", model.replace("/", "%2F"))
        return session.post(URL(self._url + path, encoded=True), json=body, headers=headers)

    async def _turn(self, session: aiohttp.ClientSession) -> None:
        ask, stream = self._dice.choice(ASKING), self._dice.random() < 0.6
        async with self._post(session, ask, stream) as got:
            body = await got.read()
        if got.status == 200 and (ask.end in body or ask.failed in body if stream else _json(body)):
            self.seen["told in stream" if stream and ask.failed in body else "answered"] += 1
        elif got.status in (429, 502, 503, 504) and _json(body):
            self.seen[f"refused {got.status}"] += 1
        else:
            self._bad(f"{ask.path} stream={stream}: {got.status} {body[-300:]!r}")

    async def _leave(self, session: aiohttp.ClientSession) -> None:
        """In the middle of an answer, or before one."""
        async def begin() -> None:
            async with self._post(session, self._dice.choice(ASKING), True) as got:
                await got.content.readany()
                got.close()
        try:
            # not wait_for: before Python 3.12 it may swallow the cancellation that ends a round
            async with asyncio.timeout(0.02 + self._dice.random() * 0.2):
                await begin()
        except TimeoutError:
            pass
        self.seen["left"] += 1

    async def _mistake(self, session: aiohttp.ClientSession) -> None:
        path, data = self._dice.choice(WRONG)
        async with session.post(self._url + path, data=data, headers={"Content-Type": "application/json"}) as got:
            body = await got.read()
        if 400 <= got.status < 500 and _json(body):
            self.seen["mistakes"] += 1
        else:
            self._bad(f"{path}: {got.status} {body[-300:]!r}")

    async def _look(self, session: aiohttp.ClientSession) -> None:
        path = self._dice.choice(LOOKS)
        headers = {"Authorization": ""} if path.startswith("/admin") else {}
        async with session.get(self._url + path, headers=headers) as got:
            await got.read()
        if got.status == 200:
            self.seen["looks"] += 1
        else:
            self._bad(f"{path}: {got.status}")

    async def _dawdle(self, session: aiohttp.ClientSession) -> None:
        """Reads a byte at a time for a while, then goes."""
        async with self._post(session, ASKING[0], True) as got:
            for _ in range(20):
                if not await got.content.read(1):
                    break
                await asyncio.sleep(0.02)
            got.close()
        self.seen["dawdled"] += 1


def _json(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except ValueError:
        return False
