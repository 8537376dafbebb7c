"""Which addresses may whoever names one lead the gateway to? One table: who names it, where it leads, what is said to it."""
import asyncio
import socket

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from gateway.config.load import ConfigError, loads
from gateway.core.errors import GatewayError
from gateway.core.timeouts import Timeouts
from gateway.mock import script as say
from gateway.upstream.aiohttp_transport import AiohttpTransport
from gateway.upstream.h1.transport import H1Transport
from gateway.upstream.poster import Poster
from gateway.upstream.reach import Fetcher, PublicResolver, Refused, check_url
from gateway.upstream.transport import Outgoing
from tests.conftest import client_key, provider
from tests.talk import ask

CREDENTIALS = ("169.254.169.254", "169.254.169.254.", "169.254.170.2", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]",
               "2852039166", "0xa9fea9fe", "0xa9.0xfe.0xa9.0xfe", "0251.0376.0251.0376", "169.16689662", "METADATA.google.internal",
               "metadata", "100.100.100.200", "168.63.129.16")
PRIVATE = ("127.0.0.1", "localhost", "10.0.0.5", "192.168.1.9", "[::1]", "[fd12::1]", "box.lan", "169.254.7.7")
PUBLIC = ("8.8.8.8", "example.com", "[2606:4700::1111]")
UP = '[[providers]]\nid = "a"\nmodels = ["m"]\n'


def toml(text):
    return lambda host: loads(text.replace("HOST", host), {})


# Who names an address, and how it is refused: when the configuration is read, or when a request wants it.
NAMED = {
    "base_url": toml(UP + 'base_url = "http://HOST/v1"\napi_keys = ["k"]\n'),
    "vars of a preset": toml('[[providers]]\npreset = "sap"\nmodels = ["m"]\napi_keys = ["k"]\nvars = {host = "HOST", deployment = "d"}\n'),
    "proxy": toml(UP + 'base_url = "https://x.example/v1"\napi_keys = ["k"]\nproxy = "http://HOST:3128"\n'),
    "token_url": toml(UP + 'base_url = "https://x.example/v1"\nauth = "oauth"\noauth = {token_url = "https://HOST/t", client_id = "c", '
                      'client_secret = "s"}\n'),
    "otel": toml('[otel]\nendpoint = "http://HOST:4318"\n'),
    "webhook": toml('[[webhooks]]\nurl = "http://HOST/h"\nsecret = "0123456789abcdef"\n'),
    "own webhook": toml('[[webhooks]]\nurl = "http://HOST/h"\nsecret = "0123456789abcdef"\nallow_private = true\n'),
    "judge": toml('[guardrails.webhook]\nurl = "http://HOST/h"\nsecret = "0123456789abcdef"\n'),
    "own judge": toml('[guardrails.webhook]\nurl = "http://HOST/h"\nsecret = "0123456789abcdef"\nallow_private = true\n'),
    "picture": lambda host: check_url(f"http://{host}/a.png"),
}
ANYWHERE = frozenset({"base_url", "vars of a preset", "proxy", "token_url", "otel", "own webhook", "own judge"})     # but to credentials
SPELLED = {"vars of a preset": ("169.254.169.254", "metadata", "100.100.100.200")}         # what such a value may hold


def refused(who, host):
    try:
        NAMED[who](host)
    except ConfigError as error:
        return any("metadata" in text or "public address" in text for _, text in error.problems)
    except Refused:
        return True
    return False


@pytest.mark.parametrize("who", NAMED)
def test_nobody_leads_us_to_where_credentials_are_handed_out(who):
    assert [host for host in SPELLED.get(who, CREDENTIALS) if not refused(who, host)] == []


@pytest.mark.parametrize("who", NAMED)
def test_into_private_networks_only_the_operator_leads_and_says_so(who):
    hosts = PRIVATE if who != "vars of a preset" else PRIVATE[:4]
    assert [host for host in hosts if refused(who, host) == (who in ANYWHERE)] == []


@pytest.mark.parametrize("who", NAMED)
def test_public_addresses_may_be_named(who):
    assert [host for host in PUBLIC[:2] if refused(who, host)] == []


class Leads(AbstractResolver):
    """A name that leads there, at whatever time it is asked."""

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        return [ResolveResult(hostname=host, host="169.254.169.254", port=port, family=socket.AF_INET, proto=0, flags=0)]

    async def close(self) -> None: ...


@pytest.mark.parametrize("kind", [H1Transport, AiohttpTransport])
@pytest.mark.parametrize("host", ["rebind.example", "169.254.169.254", "0xa9fea9fe", "[::ffff:169.254.169.254]"])
async def test_no_transport_connects_there_whatever_name_led_to_it(monkeypatch, kind, host):
    async def names(*_given, **_more):
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("169.254.169.254", 80))]
    monkeypatch.setattr(asyncio.get_running_loop().__class__, "getaddrinfo", names, raising=False)
    monkeypatch.setattr("gateway.upstream.h1.names.system", names)
    transport = kind()
    out = Outgoing(method="GET", url=f"http://{host}/latest", headers={}, body=None, timeouts=Timeouts(connect_s=2))
    with pytest.raises(GatewayError) as caught:
        await transport.send(out)
    await transport.close()
    assert (caught.value.kind, caught.value.message) == ("transport", "connection not allowed")


async def test_neither_does_a_webhook_that_may_be_private():
    poster = Poster(resolver=Leads())
    for url in ("http://hooks.example/x", "http://169.254.169.254/x"):
        with pytest.raises(GatewayError, match="not allowed"):
            await poster.post(url, b"{}", {}, private=True, timeout_s=2)
    with pytest.raises(GatewayError, match="public"):
        await poster.post("http://hooks.example/x", b"{}", {}, private=False, timeout_s=2)
    await poster.close()


async def test_nor_a_picture_even_where_the_resolver_is_asked_no_more():
    for resolver, url in ((PublicResolver(Leads()), "http://pics.example/x"), (Leads(), "http://pics.example/x")):
        fetcher = Fetcher(resolver=resolver)
        with pytest.raises(GatewayError, match="public|not allowed"):
            await fetcher.fetch(url, limit=10, timeout_s=2)
        await fetcher.close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_an_upstream_that_redirects_is_not_followed(gateway, upstream, status):
    other = await upstream(say.reply("secret"))
    up = await upstream(say.Script([say.Head(status, {"Location": f"{other.base_url}/chat/completions"}), say.Send(b"{}"), say.End()]))
    answer = await ask(await gateway(client_key() + provider(up)))
    assert answer.status >= 400 and len(up.requests) >= 1 and not other.requests and other.base_url.encode() not in answer.body
