"""How do pictures and files behind web addresses reach a wire that takes bytes only? Fetched through the guard, once a request.

A failure is the caller's: 400 naming the part (contract 7). Nothing is fetched for wires that take addresses, and nothing that an
API may look up itself (a file of its own store).
"""
import asyncio
import base64
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from gateway.core import request as rq
from gateway.core.errors import GatewayError
from gateway.upstream.reach import Fetcher
from gateway.wire import files

BYTES_ONLY: Final = frozenset({"gemini", "bedrock-converse", "ollama"})
# Addresses that a wire takes as they are: https://ai.google.dev/gemini-api/docs/files
OWN: Final[dict[str, tuple[str, ...]]] = {
    "gemini": ("https://generativelanguage.googleapis.com/", "gs://", "https://www.youtube.com/", "https://youtu.be/",
               "https://youtube.com/"),
}
MAX_BYTES: Final = 20 << 20
MAX_FILES: Final = 32
TIMEOUT_S: Final = 15.0
AT_ONCE: Final = 4
_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})

Found = tuple[str, str]                              # media type, base64


async def with_bytes(request: rq.Request, wire: str, fetcher: Fetcher) -> rq.Request:
    """The request for this wire: the very same where nothing had to be fetched. Raises bad_request naming the part."""
    talk = request.conversation
    if wire not in BYTES_ONLY or talk is None:
        return request
    wanted = dict(_addresses(talk, OWN.get(wire, ())))
    missing = [url for url in wanted if url not in request.fetched]
    if len(wanted) > MAX_FILES:
        raise GatewayError("bad_request", f"More than {MAX_FILES} files would have to be fetched.", param="messages")
    if missing:
        await _fetch_all(missing, wanted, request.fetched, fetcher)
    if not wanted:
        return request
    return msgspec.structs.replace(request, conversation=_filled(talk, request.fetched))


async def _fetch_all(urls: list[str], places: dict[str, str], found: dict[str, Found], fetcher: Fetcher) -> None:
    room = asyncio.Semaphore(AT_ONCE)

    async def one(url: str) -> None:
        at = places[url]
        async with room:
            try:
                kind, data = await fetcher.fetch(url, limit=MAX_BYTES, timeout_s=TIMEOUT_S)
            except GatewayError as error:
                raise GatewayError("bad_request", f"{at}: {error.message}", param=at) from None
        if not data or kind in _PAGES:
            raise GatewayError("bad_request", f"{at}: the URL leads to a page, not to a file.", param=at)
        text = base64.b64encode(data).decode()
        found[url] = (files.image_type(text, kind or "application/octet-stream"), text)

    tasks = [asyncio.ensure_future(one(url)) for url in urls]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def _addresses(talk: rq.Conversation, own: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """(address, place) of every part whose bytes are elsewhere."""
    for i, message in enumerate(talk.messages):
        if message.role == "assistant":
            continue
        for j, part in enumerate(message.parts):
            inner: list[tuple[str, Any]] = [(f"messages.{i}.content.{j}", part)]
            if isinstance(part, rq.Result):
                inner = [(f"messages.{i}.content.{j}.{k}", one) for k, one in enumerate(part.parts)]
            for at, one in inner:
                if _away(one) and not one.url.startswith(own or ("-",)):
                    yield one.url, at


def _away(part: Any) -> bool:
    return isinstance(part, (rq.Image, rq.Document)) and not part.data and part.url.startswith(("http://", "https://"))


def _filled(talk: rq.Conversation, found: dict[str, Found]) -> rq.Conversation:
    """The same dialogue with the bytes in it; parts that are shared with the original are not touched."""
    return msgspec.structs.replace(talk, messages=[
        msgspec.structs.replace(message, parts=[_part(part, found) for part in message.parts])
        if message.role != "assistant" else message for message in talk.messages])


def _part(part: Any, found: dict[str, Found]) -> Any:
    if isinstance(part, rq.Result):
        return msgspec.structs.replace(part, parts=[_part(one, found) for one in part.parts])
    if not _away(part) or part.url not in found:
        return part
    kind, data = found[part.url]
    return msgspec.structs.replace(part, url="", data=data, media_type=kind)
