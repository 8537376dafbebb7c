"""The Messages API as Google hosts it: the model in the path, the version in the body."""
import json

import pytest

from gateway.wire import WIRES
from gateway.wire.base import Outbound

MESSAGES, CHAT = WIRES["anthropic"], WIRES["openai-chat"]
ASK = [{"role": "user", "content": "Hi"}]


@pytest.mark.parametrize("wire", [MESSAGES, CHAT], ids=["messages", "chat"])
@pytest.mark.parametrize(("stream", "verb"), [(True, "streamRawPredict"), (False, "rawPredict")])
def test_the_model_moves_into_the_path(wire, stream, verb):
    request = wire.parse_request(json.dumps({"model": "c", "max_tokens": 9, "messages": ASK, "stream": stream}).encode())
    if wire is CHAT:
        request.conversation = wire.open(request)
    to = Outbound(model="claude-x@1", provider="p", stream=stream, flags=frozenset({"vertex"}))
    body = json.loads(MESSAGES.build_request(request, to))
    assert MESSAGES.upstream_path(request, to) == f"/models/claude-x@1:{verb}"
    assert body["anthropic_version"] == "vertex-2023-10-16" and "model" not in body
    assert body["messages"] == ASK and body.get("stream", False) == stream
