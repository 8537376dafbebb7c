"""How does a message reach the worker that holds its client's SSE stream? It is tried here, then all other workers are asked.

A stream is held by one process, and what its client posts arrives at any. Who asks is judged where the message arrives; its name and
scopes travel along, over the supervisor's socket that nobody else may open.
"""
import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from gateway.admin.office import Office
from gateway.core.errors import GatewayError
from gateway.mcp.asgi import App, Event
from gateway.mcp.callers import Caller, known

log = logging.getLogger("gateway.mcp")

MAX_UNDER_WAY: Final = 64                       # messages that a stream's client has not made room for
NOT_HERE: Final = 404
BUSY: Final = 503
GONE: Final = ("There is no such SSE session: its stream has ended, another key opened it, or another node holds it. Open a new one "
               "at /mcp/sse; Streamable HTTP at /mcp needs none.")

# What the others say to a letter, and whether all of them were heard.
Others = Callable[[Any], Awaitable[tuple[list[Any], bool]]]


class Letter(msgspec.Struct, frozen=True):
    """One message as it was posted; ``query`` names the session."""
    query: bytes
    kind: str
    body: bytes
    caller: str
    scopes: frozenset[str]


class Receipt(msgspec.Struct, frozen=True):
    status: int
    text: str = ""


async def nobody(letter: Any) -> tuple[list[Any], bool]:
    return [], True


class Letters:
    """The messages of one process. ``app``: the SDK's, which knows the sessions of this process; None: there were none so far."""

    def __init__(self, office: Office, user: Callable[[Caller], Any]) -> None:
        self.app: App | None = None
        self.others: Others = nobody
        self._office = office
        self._user = user
        self._under_way: set[asyncio.Task[None]] = set()

    async def post(self, letter: Letter, who: Caller) -> Receipt:
        """Raises shed where nobody can tell, not_found where nobody has the session."""
        if (receipt := await self._delivered(letter, who)).status != NOT_HERE:
            return busy(receipt)
        told, all_heard = await self.others(msgspec.to_builtins(letter, builtin_types=(bytes,)))
        for each in msgspec.convert(told, list[Receipt]):
            if each.status != NOT_HERE:
                return busy(each)
        if not all_heard:
            raise GatewayError("shed", "The worker that may hold this SSE session did not answer; try again.", retry_after_s=1.0)
        raise GatewayError("not_found", GONE)

    async def take(self, given: Any) -> Any:
        """One that came to another worker."""
        letter = msgspec.convert(given, Letter)
        who = known(letter.caller, letter.scopes, self._office)
        return msgspec.to_builtins(Receipt(NOT_HERE) if who is None else await self._delivered(letter, who))

    async def _delivered(self, letter: Letter, who: Caller) -> Receipt:
        if self.app is None:
            return Receipt(NOT_HERE)
        if len(self._under_way) >= MAX_UNDER_WAY:
            return Receipt(BUSY, f"{MAX_UNDER_WAY} messages wait for clients that do not read.")
        envelope = Envelope(letter, {"caller": who, "user": self._user(who)})
        task = asyncio.create_task(envelope.deliver(self.app))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await envelope.receipt

    async def close(self) -> None:
        """After the last stream: nobody waits for what is still under way."""
        for task in list(self._under_way):
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)


def busy(receipt: Receipt) -> Receipt:
    """Raises shed where it says that."""
    if receipt.status == BUSY:
        raise GatewayError("shed", receipt.text, retry_after_s=1.0)
    return receipt


class Envelope:
    """A request of ASGI that no connection belongs to. ``receipt``: what is answered, before the stream's client has taken it."""

    def __init__(self, letter: Letter, more: dict[str, Any]) -> None:
        self.receipt: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        self._letter = letter
        self._more = more
        self._status = 0
        self._text = b""

    async def deliver(self, app: App) -> None:
        scope = {"type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": "POST",
                 "scheme": "http", "path": "/", "raw_path": b"/", "query_string": self._letter.query, "root_path": "",
                 "headers": [(b"content-type", self._letter.kind.encode("latin-1", "replace"))], "client": None, "server": None,
                 "extensions": {}, **self._more}
        try:
            await app(scope, self._receive, self._send)
        except Exception:
            if not self.receipt.done():
                log.exception("a message for an SSE stream failed inside the gateway")
        finally:
            if not self.receipt.done():
                self.receipt.set_result(Receipt(500, "The gateway failed on this message; its log has the details."))

    async def _receive(self) -> Event:
        return {"type": "http.request", "body": self._letter.body, "more_body": False}

    async def _send(self, event: Event) -> None:
        if event["type"] == "http.response.start":
            self._status = event["status"]
            return
        self._text += event.get("body", b"")
        if not event.get("more_body", False) and not self.receipt.done():
            self.receipt.set_result(Receipt(self._status, self._text.decode("utf-8", "replace")))
