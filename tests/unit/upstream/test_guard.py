"""Only what is on a list leaves, in either direction."""
import pytest
from multidict import CIMultiDict

from gateway.core.errors import GatewayError
from gateway.upstream.guard import base_headers, outgoing, returned

BASE = base_headers({"X-Title": "shop"}, {"Authorization": "Bearer up-key"})
CLIENT = CIMultiDict({
    "Authorization": "Bearer client-key", "x-api-key": "client-key", "x-goog-api-key": "client-key", "Cookie": "a=b",
    "X-Forwarded-For": "10.1.1.1", "Forwarded": "for=10.1.1.1", "User-Agent": "curl", "Host": "me", "X-Anything": "1",
    "anthropic-beta": "tools-1", "Anthropic-Version": "2023-06-01", "OpenAI-Beta": "x=v2", "Idempotency-Key": "k1",
    "traceparent": "00-aa-bb-01"})


def lower(headers: dict[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def test_of_the_clients_headers_only_the_listed_ones_go_up() -> None:
    sent = lower(outgoing(BASE, CLIENT, stream=True))
    assert sent == {"content-type": "application/json", "accept": "text/event-stream", "accept-encoding": "identity",
                    "user-agent": "gateway", "x-title": "shop", "authorization": "Bearer up-key", "anthropic-beta": "tools-1",
                    "anthropic-version": "2023-06-01", "openai-beta": "x=v2"}


def test_a_whole_answer_is_asked_for_as_json() -> None:
    sent = lower(outgoing(BASE, CLIENT, stream=False))
    assert sent["accept"] == "application/json" and sent["accept-encoding"] == "gzip"


def test_what_the_operator_configured_wins_and_lists_are_joined() -> None:
    base = base_headers({"Anthropic-Version": "2030-01-01", "Anthropic-Beta": "own, tools-1"}, {})
    sent = lower(outgoing(base, CLIENT, stream=True))
    assert sent["anthropic-version"] == "2030-01-01"
    assert sent["anthropic-beta"] == "own,tools-1"


def test_credentials_replace_a_configured_header_of_the_same_name_in_any_case() -> None:
    assert lower(base_headers({"authorization": "Bearer old"}, {"Authorization": "Bearer new"}))["authorization"] == "Bearer new"


@pytest.mark.parametrize("bad", ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b"])
def test_line_breaks_are_refused_wherever_they_come_from(bad: str) -> None:
    with pytest.raises(ValueError, match="X-Title") as caught:
        base_headers({"X-Title": bad}, {})
    assert "Evil" not in str(caught.value)
    with pytest.raises(GatewayError) as refused:
        outgoing(BASE, {"anthropic-beta": bad}, stream=True)
    assert refused.value.param == "anthropic-beta"


@pytest.mark.parametrize("name", ["Content-Length", "transfer-encoding", "Host", "Connection", "Upgrade", "two words", ""])
def test_headers_that_frame_the_message_cannot_be_configured(name: str) -> None:
    with pytest.raises(ValueError):
        base_headers({name: "1"}, {})


def test_of_the_upstreams_headers_only_those_of_the_content_come_back() -> None:
    up = CIMultiDict({"content-type": "audio/mpeg", "Content-Length": "5", "Content-Encoding": "gzip", "Set-Cookie": "a=b",
                      "Server": "x", "X-Request-Id": "theirs", "openai-organization": "org"})
    assert returned(up) == {"content-type": "audio/mpeg"}
