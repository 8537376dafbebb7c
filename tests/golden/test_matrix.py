"""One full conversation, from every surface to every upstream format and back, as files for a reviewer's eye: tests/golden/matrix.

GOLDEN=write rewrites what is derived; read the difference before committing it.
"""
import itertools
import json
import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from gateway.core import ids
from gateway.core.clock import SystemClock
from gateway.mock import script as say
from tests.conftest import KEY, client_key, provider
from tests.talk import ask

FILES = Path(__file__).parent / "matrix"
MODELS = {"openai-chat": "qwen3-32b", "openai-responses": "gpt-5", "anthropic": "claude-sonnet-4-5",
          "gemini": "gemini-3-pro-preview", "ollama": "qwen3:8b"}
GEMINI = "/v1beta/models/{model}:"
# surface: (path of a whole answer, path of a stream, ending of a stream's file)
SURFACES = {"chat": ("/v1/chat/completions",) * 2 + ("sse",), "responses": ("/v1/responses",) * 2 + ("sse",),
            "messages": ("/v1/messages",) * 2 + ("sse",),
            "gemini": (GEMINI + "generateContent", GEMINI + "streamGenerateContent?alt=sse", "sse"),
            "ollama": ("/api/chat", "/api/chat", "ndjson")}
HEADERS = {"Authorization": f"Bearer {KEY}", "X-Request-ID": "req_golden"}
DURATION = re.compile(rb'"((?:total|eval)_duration)":\d+')


@pytest.fixture(autouse=True)
def still(monkeypatch):
    """Ids that count and a clock that stands."""
    count = itertools.count(1)
    monkeypatch.setattr(ids, "os", SimpleNamespace(urandom=lambda n: bytes([next(count)] * n)))
    monkeypatch.setattr(SystemClock, "wall", staticmethod(lambda: 1_780_000_000.0))


@pytest.fixture
def talk(gateway, upstream):
    """The conversation on this surface with an upstream of this format: (what the upstream was asked, what the client got)."""
    async def go(surface, wire, stream):
        (answer,) = FILES.glob(f"answers/{wire}." + ("sse" if stream and wire != "ollama" else "ndjson" if stream else "json"))
        kind = "application/x-ndjson" if wire == "ollama" else "text/event-stream"
        up = await upstream(say.body_of(answer.read_bytes(), headers={"Content-Type": kind} if stream else say.JSON))
        model = MODELS[wire]
        address = up.base_url.removesuffix("/v1") if wire == "ollama" else up.base_url
        base_url = await gateway(client_key() + provider(address, models=f'["{model}"]', wire=f'"{wire}"')
                                 + '[store]\nurl = "memory:"\n[ollama]\nmode = "key"\n')
        body = json.loads((FILES / f"asked/{surface}.json").read_text(encoding="utf-8").replace("MODEL", model))
        if surface != "gemini" and (stream or surface == "ollama"):
            body["stream"] = stream
        if surface == "chat" and stream:
            body["stream_options"] = {"include_usage": True}
        path = SURFACES[surface][stream].format(model=model)
        got = await ask(base_url, body, path=path, headers=HEADERS)
        assert got.status == 200, got.body
        return up.requests[-1], got.body
    return go


def reviewed(name, made):
    path = FILES / name
    if os.environ.get("GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(made)
    assert made.decode() == path.read_text(encoding="utf-8")


def pretty(raw, **before):
    return json.dumps({**before, **json.loads(raw)}, indent=2, ensure_ascii=False).encode() + b"\n"


@pytest.mark.parametrize("wire", MODELS)
@pytest.mark.parametrize("surface", SURFACES)
async def test_the_conversation_is_written_as_reviewed(talk, surface, wire):
    asked, told = await talk(surface, wire, True)
    reviewed(f"upstream/{surface}-{wire}.json", pretty(asked.body, POST=asked.path))
    reviewed(f"client/{surface}-{wire}.{SURFACES[surface][2]}", DURATION.sub(rb'"\1":0', told))
    _, whole = await talk(surface, wire, False)
    reviewed(f"client/{surface}-{wire}.json", pretty(DURATION.sub(rb'"\1":0', whole)))
