"""Pictures behind addresses are fetched through the guard for wires that take bytes, once a request; a failure names the part."""
import base64
import json

import pytest

from gateway.core.errors import GatewayError
from gateway.upstream.fetch import MAX_FILES, with_bytes
from gateway.wire import WIRES
from gateway.wire.base import Outbound

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUg==")
CHAT = WIRES["openai-chat"]


class Web:
    """A fetcher whose web is a dict: bytes with a type, or what goes wrong."""

    def __init__(self, pages):
        self.pages, self.asked = pages, []

    async def fetch(self, url, *, limit, timeout_s):
        self.asked.append(url)
        found = self.pages[url]
        if isinstance(found, Exception):
            raise found
        return found


def asking(*urls):
    body = {"model": "m", "messages": [{"role": "user", "content": [
        {"type": "text", "text": "see"}, *({"type": "image_url", "image_url": {"url": url}} for url in urls)]}]}
    request = CHAT.parse_request(json.dumps(body).encode())
    request.conversation = CHAT.open(request)
    return request


@pytest.mark.parametrize("wire", ["gemini", "bedrock-converse", "ollama"])
async def test_a_wire_that_takes_bytes_gets_them_with_their_real_type(wire):
    web = Web({"https://a.example/x": ("image/jpeg", PNG)})
    request = asking("https://a.example/x", "https://a.example/x")
    ready = await with_bytes(request, wire, web)
    body = WIRES[wire].build_request(ready, Outbound(model="m", provider="p", stream=False)).decode()
    assert base64.b64encode(PNG).decode() in body and "a.example" not in body and "jpeg" not in body
    assert await with_bytes(request, wire, web) is not request
    assert web.asked == ["https://a.example/x"]
    assert request.conversation.messages[0].parts[1].url == "https://a.example/x"


async def test_others_get_the_address():
    request = asking("https://a.example/x")
    assert await with_bytes(request, "anthropic", Web({})) is request


async def test_nothing_is_fetched_that_is_there_or_that_the_api_knows_itself():
    request = asking(f"data:image/png;base64,{base64.b64encode(PNG).decode()}", "https://generativelanguage.googleapis.com/v1beta/files/x")
    assert await with_bytes(request, "gemini", Web({})) is request


@pytest.mark.parametrize("found", [GatewayError("bad_request", "the URL answered 404"), ("text/html", b"<html>"), ("image/png", b"")])
async def test_a_failure_names_the_part(found):
    with pytest.raises(GatewayError, match=r"messages\.0\.content\.1") as told:
        await with_bytes(asking("https://a.example/x"), "gemini", Web({"https://a.example/x": found}))
    assert (told.value.status, told.value.param) == (400, "messages.0.content.1")


async def test_there_is_an_end_to_what_is_fetched():
    with pytest.raises(GatewayError, match="More than"):
        await with_bytes(asking(*(f"https://a.example/{i}" for i in range(MAX_FILES + 1))), "gemini", Web({}))
