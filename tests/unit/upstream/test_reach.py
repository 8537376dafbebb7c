"""URLs inside requests lead to public addresses or nowhere."""
import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from gateway.core.errors import GatewayError
from gateway.upstream import reach
from gateway.upstream.reach import Fetcher, PublicResolver, Refused, check_url, public


@pytest.mark.parametrize("address", [
    "127.0.0.1", "127.9.9.9", "0.0.0.0", "10.0.0.1", "172.16.5.5", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.100.100.200",
    "192.0.0.192", "198.18.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1", "168.63.129.16", "192.88.99.1",
    "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1", "2001:0:1::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "::ffff:0:10.0.0.1", "nonsense", "", "1.2.3"])
def test_addresses_that_only_we_can_reach_are_not_public(address: str) -> None:
    assert not public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"])
def test_public_addresses_are(address: str) -> None:
    assert public(address)


@pytest.mark.parametrize("url", [
    "file:///etc/passwd", "ftp://example.com/", "gopher://example.com", "//example.com", "http://", "http:///x", "example.com",
    "http://localhost/", "http://LOCALHOST./", "http://a.localhost/", "http://printer.local/", "http://metadata.google.internal/",
    "http://intranet/", "http://metadata/", "http://127.0.0.1/", "http://[::1]/", "http://[::ffff:7f00:1]/", "http://127.1/",
    "http://2130706433/", "http://0x7f000001/", "http://0x7f.0.0.1/", "http://0177.0.0.1/", "http://017700000001/", "http://0/",
    "http://127.0.0.1.:80/", "http://user:pw@example.com/", "http://user@example.com/", "http://example.com:0/",
    "http://example.com:99999/", "http://exa mple.com/", "http://example.com\\@127.0.0.1/", "http://example.com/\r\nX: y",
    "http://127\u30020\u30020\u30021/", "http://\uff11\uff12\uff17.0.0.1/", "http://[fe80::1%25eth0]/", "http://a/" + "x" * 9_000])
def test_urls_that_must_not_be_fetched_are_refused(url: str) -> None:
    with pytest.raises(Refused) as caught:
        check_url(url)
    assert caught.value.kind == "bad_request" and "127" not in caught.value.message


@pytest.mark.parametrize("url", ["https://example.com/a.png?x=1", "http://8.8.8.8/", "https://[2606:4700::1111]:8443/x",
                                 "https://b\u00fccher.example/", "https://cafe.dead.beef.example/"])
def test_public_urls_are_fetched(url: str) -> None:
    assert check_url(url).hostname


class Names(AbstractResolver):
    """Answers from a list, one after the other: what a rebinding attacker does."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=0) for address in found]

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("answer", [["127.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["::ffff:169.254.169.254"], []])
async def test_a_name_that_leads_inside_is_refused_when_it_is_resolved(answer: list[str]) -> None:
    fetcher = Fetcher(resolver=PublicResolver(Names(answer)))
    with pytest.raises(Refused):
        await fetcher.fetch("http://rebind.example/", limit=100, timeout_s=5)
    await fetcher.close()


class Pinned(Names):
    """Stands for a checked answer: it leads to the test's own server."""

    def __init__(self) -> None:
        super().__init__(["127.0.0.1"])
        self.asked = 0

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        self.asked += 1
        return await super().resolve(host, port, family)


@pytest.fixture
async def site() -> AsyncIterator[int]:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/in":
            return web.Response(status=302, headers={"Location": "http://127.0.0.1/secret"})
        if request.path == "/on":
            return web.Response(status=302, headers={"Location": "/image"})
        if request.path == "/round":
            return web.Response(status=302, headers={"Location": "/round"})
        if request.path == "/slow":
            await asyncio.sleep(0.3)
        if request.path == "/none":
            return web.Response(status=404)
        assert "Cookie" not in request.headers
        return web.Response(body=b"png", content_type="image/png", headers={"Set-Cookie": "a=b"})
    server = web.Server(answer)
    runner = web.ServerRunner(server)
    await runner.setup()
    place = web.TCPSite(runner, "127.0.0.1", 0)
    await place.start()
    yield place._server.sockets[0].getsockname()[1]
    await runner.cleanup()


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    made = Fetcher(resolver=Pinned())
    yield made
    await made.close()


async def test_content_is_fetched_and_redirects_are_followed(site: int, fetcher: Fetcher) -> None:
    for path in ("image", "on"):
        assert await fetcher.fetch(f"http://pics.example:{site}/{path}", limit=10, timeout_s=5) == ("image/png", b"png")


@pytest.mark.parametrize(("path", "words"), [("in", "public"), ("round", "too often"), ("none", "404"), ("slow", "within 0.05 s")])
async def test_what_goes_wrong_is_said(site: int, fetcher: Fetcher, path: str, words: str) -> None:
    with pytest.raises(GatewayError, match=words):
        await fetcher.fetch(f"http://pics.example:{site}/{path}", limit=10, timeout_s=0.05 if path == "slow" else 5)


async def test_content_is_bounded(site: int, fetcher: Fetcher) -> None:
    with pytest.raises(GatewayError, match="larger than 2 bytes"):
        await fetcher.fetch(f"http://pics.example:{site}/image", limit=2, timeout_s=5)


async def test_each_fetch_resolves_anew_and_connects_to_what_was_checked(site: int) -> None:
    names = Pinned()
    fetcher = Fetcher(resolver=names)
    for _ in range(2):
        await fetcher.fetch(f"http://pics.example:{site}/image", limit=10, timeout_s=5)
    await fetcher.close()
    assert names.asked == 2 and reach.MAX_REDIRECTS == 3
