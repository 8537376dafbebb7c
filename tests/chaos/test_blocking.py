"""Nothing that a request does blocks the event loop: not a file, a name, a process, a database or a lock."""
import asyncio
import glob
import os
import socket
import sqlite3
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from gateway.mock import script as say
from gateway.observe import access
from gateway.observe.lines import LineWriter
from tests.chaos.watch import Watch
from tests.conftest import client_key, provider
from tests.talk import ask

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}}]
SCHEMA = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object", "properties": {"x": {"type": "integer"}}}}}
USER = [{"role": "user", "content": "hi"}]
CHAT = {"model": "best", "messages": USER}
GEMINI = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}

POSTS = [
    ("/v1/chat/completions", CHAT), ("/v1/chat/completions", {**CHAT, "stream": True}),
    ("/v1/chat/completions", {**CHAT, "tools": TOOLS, "stream": True}), ("/v1/chat/completions", {**CHAT, "response_format": SCHEMA}),
    ("/v1/chat/completions", {**CHAT, "model": "auto"}), ("/v1/chat/completions", {**CHAT, "model": "auto/fast", "stream": True}),
    ("/v1/chat/completions", {**CHAT, "model": "nobody"}), ("/v1/chat/completions", {**CHAT, "messages": "wrong"}),
    ("/v1/completions", {"model": "m", "prompt": "hi"}), ("/v1/messages", {**CHAT, "max_tokens": 9, "stream": True}),
    ("/v1/messages", {**CHAT, "max_tokens": 9}), ("/v1/messages/count_tokens", {**CHAT, "model": "m"}),
    ("/v1/responses", {"model": "m", "input": "hi"}), ("/v1/responses", {"model": "m", "input": "hi", "stream": True}),
    ("/v1/responses/input_tokens", {"model": "m", "input": "hi"}),
    ("/v1beta/models/m:generateContent", GEMINI), ("/v1beta/models/m:streamGenerateContent?alt=sse", GEMINI),
    ("/v1beta/models/m:countTokens", GEMINI), ("/v1/embeddings", {"model": "e", "input": "hi"}),
    ("/v1/files", {}), ("/v1/nowhere", {}),
]
GETS = ["/v1/models", "/v1/models/m", "/v1beta/models", "/livez", "/readyz", "/metrics", "/v1/responses/resp_none", "/admin", "/v1/openapi.json"]


def answer(asked):
    """A model that speaks, calls and embeds, slowly enough that there is something to wait for."""
    if asked.path.endswith("/embeddings"):
        return say.body_of(b'{"object":"list","model":"e","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"usage":{}}')
    body = asked.json()
    if body.get("tools"):
        return say.tool_stream("f", ['{"x": ', "1,"])
    text = '{"x": 1' if body.get("response_format") else "hello"
    return say.stream(text, delay_s=0.001) if body.get("stream") else say.reply(text)


async def requests(base_url):
    """Each of the set once; how often each status came."""
    seen = [(await ask(base_url, body, path=path)).status for path, body in POSTS]
    kept = (await ask(base_url, {"model": "m", "input": "hi"}, path="/v1/responses")).json
    follow = {"model": "m", "input": "more", "previous_response_id": kept["id"]}
    seen += [(await ask(base_url, follow, path="/v1/responses")).status]
    seen += [(await ask(base_url, path=path, method="GET")).status for path in [*GETS, f"/v1/responses/{kept['id']}"]]
    return seen


@pytest.fixture
async def base_url(gateway, upstream, tmp_path, monkeypatch, stack):
    """A gateway with everything on that keeps something: a store on disk, lines of the log, a provider that fails first."""
    broken, up = await upstream([say.error(500), say.reset_before_headers(), say.html()]), await upstream(answer)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    stack.callback(os.close, nowhere)
    monkeypatch.setattr(access, "LineWriter", lambda: LineWriter(nowhere))
    return await gateway(client_key(rpm="1000", tpm="1000000", concurrency="9") + provider(broken, "a", '["m"]') + provider(
        up, "b", '["m", {id = "e", kind = "embedding"}]', limits="{rpm = 1000}")
        + f'[[combos]]\nname = "best"\nstrategy = "auto"\ntargets = ["a/m", "b/m"]\n[store]\nurl = "sqlite:{tmp_path}/g.db"\n')


async def test_no_request_blocks_the_loop(base_url):
    with Watch() as watch:
        seen = await requests(base_url)
        await asyncio.sleep(0.05)
    assert watch.seen == []
    assert seen.count(200) >= 20, "they did something"


async def test_a_step_that_blocks_is_noticed_and_named(base_url, monkeypatch):
    from gateway.pipeline import prepare

    def slow(request, factor=1.0, _estimate=prepare.estimate_request):
        time.sleep(0)
        with open(os.devnull):
            return _estimate(request, factor)
    monkeypatch.setattr(prepare, "estimate_request", slow)
    with Watch() as watch:
        await ask(base_url, CHAT)
    assert {what for what, _ in watch.seen} == {"time.sleep", "open"}
    assert all("gateway/pipeline/prepare.py" in where for _, where in watch.seen)


BLOCKING = {
    "open": lambda: open(os.devnull).close(),
    "Path.read_bytes": lambda: Path(os.devnull).read_bytes(),
    "Path.exists": lambda: Path(os.devnull).exists(),
    "listdir": lambda: os.listdir("/"),
    "glob": lambda: glob.glob("/*"),
    "sleep": lambda: time.sleep(0),
    "getaddrinfo": lambda: socket.getaddrinfo("127.0.0.1", 1),
    "process": lambda: subprocess.run(["true"], check=False),
    "system": lambda: os.system("true"),
    "sqlite": lambda: sqlite3.connect(":memory:").close(),
    "url": lambda: urllib.request.urlopen("data:,x").close(),
    "event": lambda: threading.Event().wait(0.001),
}


@pytest.mark.parametrize("call", BLOCKING.values(), ids=BLOCKING)
async def test_every_kind_of_blocking_call_is_noticed(call):
    with Watch() as watch:
        call()
    noted = len(watch.seen)
    call()
    assert len(watch.seen) == noted > 0


async def test_what_other_threads_do_is_their_business():
    with Watch() as watch:
        await asyncio.to_thread(BLOCKING["open"])
        await asyncio.to_thread(BLOCKING["sleep"])
        await asyncio.get_running_loop().getaddrinfo("127.0.0.1", 1)
    assert watch.seen == []
