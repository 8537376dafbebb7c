"""What of one side's headers reaches the other? What is on a list, and never a line of its own."""
import pytest

from gateway.core.errors import GatewayError
from gateway.mock import script as say
from gateway.upstream.guard import outgoing, returned
from tests.conftest import client_key, provider
from tests.fuzz.door import asking
from tests.security.test_smuggling import answered, keyed
from tests.talk import AUTH, ask

TO_UPSTREAMS = {"host", "content-type", "accept", "accept-encoding", "user-agent", "authorization", "content-length", "anthropic-beta",
                "anthropic-version", "openai-beta"}
TO_CLIENTS = {"server", "x-request-id", "request-id", "x-routed-via", "x-fallback-attempts", "x-fallback-trail", "content-type", "date",
              "content-length", "transfer-encoding", "cache-control", "x-accel-buffering", "connection", "content-disposition", "content-language", "x-freellm-cache"}
SAID = {"Cookie": "a=b", "X-Forwarded-For": "1.2.3.4", "Forwarded": "for=1.2.3.4", "Proxy-Authorization": "Basic eA==", "Via": "1.1 x",
        "X-Real-IP": "1.2.3.4", "X-Api-Key": "mine", "X-Goog-Api-Key": "mine", "Api-Key": "mine", "Referer": "http://x", "Accept-Language": "de",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Range": "bytes=0-1", "If-None-Match": "*", "X-Any": "x",
        "anthropic-beta": "a, b", "OpenAI-Organization": "org", "X-HTTP-Method-Override": "DELETE"}
ANSWERED = (b"Set-Cookie: a=b\r\nLocation: http://x\r\nX-Any: 1\r\nWWW-Authenticate: Basic\r\nAlt-Svc: h3\r\nRefresh: 0\r\nLink: <x>\r\n"
            b"Access-Control-Allow-Origin: *\r\nStrict-Transport-Security: max-age=1\r\nServer: nginx\r\nX-Request-ID: theirs\r\n")
REPLY = b'{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}'
EVIL = ("\r\nX-Evil: 1", "\nX-Evil: 1", "\rX-Evil: 1", "\0", "\x0b", "\x7f", "\udcff", "\r\n\r\n{}")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/embeddings"])
async def test_of_a_client_s_headers_upstreams_get_those_of_the_list(gateway, upstream, path):
    up = await upstream(say.reply("hello"))
    base = await gateway(client_key() + provider(up))
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "input": "x", "max_tokens": 9}
    await ask(base, body, path=path, headers=SAID | AUTH)
    assert up.requests and {field for asked in up.requests for field in asked.headers} <= TO_UPSTREAMS
    assert all(asked.headers["authorization"] == "Bearer sk-up-1" for asked in up.requests)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [b"200 OK", b"400 Bad", b"429 Slow", b"500 No"])
async def test_of_an_upstream_s_headers_clients_get_those_of_the_list(gateway, upstream, status, stream):
    data = b"data: " + REPLY.replace(b'"message"', b'"delta"') + b"\n\ndata: [DONE]\n\n" if stream else REPLY
    kind = b"text/event-stream" if stream else b"application/json"
    up = await upstream(say.Script([say.Raw(b"HTTP/1.1 %b\r\nContent-Type: %b\r\n%bContent-Length: %d\r\n\r\n%b" % (
        status, kind, ANSWERED, len(data), data)), say.Close()]))
    answer = await ask(await gateway(client_key() + provider(up)), stream=stream)
    assert {field.lower() for field in answer.headers} <= TO_CLIENTS | {"retry-after", "retry-after-ms"}
    assert answer.headers["Server"] == "gateway" and answer.headers["X-Request-ID"] != "theirs"


@pytest.mark.parametrize("kind", [b"audio/mpeg; x=\xff", b"audio/mpeg\x01", b"audio/mpeg\nX-Evil: 1", b"audio/mpeg\rX-Evil: 1", b"a\0b", b"\r\n X-Evil: 1"])
async def test_a_header_that_passes_is_a_value_or_nothing(gateway, upstream, kind):
    """Speech keeps its content type; one that cannot be written again is a failure of its provider, not of the connection."""
    up = await upstream(say.Script([say.Raw(b"HTTP/1.1 200 OK\r\nContent-Type: " + kind + b"\r\nContent-Length: 3\r\n\r\nabc"), say.Close()]))
    base = await gateway(client_key() + provider(up, models='[{id = "m", kind = "speech"}]'))
    answer = await ask(base, {"model": "m", "input": "x", "voice": "y"}, path="/v1/audio/speech")
    assert answer.status == 502 and "X-Evil" not in answer.headers and answer.json["error"]["message"]


@pytest.mark.parametrize("evil", EVIL)
def test_no_value_holds_a_line_or_what_is_no_text(evil):
    assert returned({"content-type": "a" + evil}) == {}
    with pytest.raises(GatewayError) as caught:
        outgoing({}, {"anthropic-beta": "a" + evil}, stream=False)
    assert caught.value.status == 400


async def test_values_that_come_back_in_an_answer_are_fit_to(gateway, upstream):
    """X-Request-ID is repeated where it can be one; names of models, keys and paths are told in JSON alone."""
    up = await upstream(say.reply("hello"))
    base = await gateway(client_key() + provider(up))
    for more in ("X-Request-ID: a\xff\r\n", "X-Request-ID: a b;c\r\n", "Origin: http://a\xff\r\n", f"X-Request-ID: {'a' * 2_000}\r\n",
                 "traceparent: \xff\r\n", "X-Session-Id: \xff\xfe\r\n", "User-Agent: \xff\r\n", "anthropic-beta: \xff\r\n"):
        statuses, got = await answered(base, keyed(asking(more=more)))
        assert statuses in ([200], [400]), (more, got)
        assert all(line.isascii() and len(line) < 300 for line in got.partition(b"\r\n\r\n")[0].split(b"\r\n"))
    for path in ("/v1/models/%0d%0aX-Evil:%201", "/v1/models/%ff", "/v1/models/%00", "/v1beta/models/a%0ab:generateContent"):
        _, got = await answered(base, keyed(asking(path=path)).replace(b"POST /v1/m", b"GET /v1/m"))
        assert b" 40" in got[:13] and b"\nX-Evil" not in got
