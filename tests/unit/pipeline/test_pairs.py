"""A stream that comes frame by frame reaches a client of every format, whatever the upstream's; and as it came, where both agree."""
import asyncio
from typing import Any

import pytest
from multidict import CIMultiDict

from gateway.config.load import loads
from gateway.core import events as ev
from gateway.core.call import Call
from gateway.pipeline.deliver import Client
from gateway.pipeline.serve import serve
from gateway.server import compose
from gateway.surfaces.routes import ROUTES
from gateway.wire import WIRES
from gateway.wire.base import Shown
from tests.conftest import KEY, client_key
from tests.unit.wire.frames import asked, dump

DOORS = {door.name: door for door in ROUTES if door.name in ("chat", "messages", "responses", "completions")}
BODIES = {"messages": {"max_tokens": 50, "messages": [{"role": "user", "content": "hi"}]},
          "responses": {"input": "hi", "store": False}, "chat": {"messages": [{"role": "user", "content": "hi"}], "stream_options": {"include_usage": True}},
          "completions": {"prompt": "hi"}}
UPSTREAMS = ("openai-chat", "anthropic", "openai-responses", "gemini")
PIECES = [f"word {n} " for n in range(30)]
CONNECTION: Any = object()


class Body:
    def __init__(self, data):
        self._data = data

    def is_eof(self):
        return True

    def at_eof(self):
        return not self._data

    async def readany(self):
        data, self._data = self._data, b""
        return data


class Http:
    method, content_length, transport = "POST", 9, None

    def __init__(self, body):
        self.content = Body(body)
        self.headers = CIMultiDict({"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"})


class Heard(Client):
    """A client that keeps what it is told."""

    __slots__ = ("heard",)

    async def start(self):
        self.response, self.heard = CONNECTION, []

    async def write(self, data, now):
        self.heard.append(data)

    async def end(self, data=b""):
        self.heard.append(data)


class Frames:
    """A transport, and its answer: a frame a read."""

    complete, status = True, 200

    def __init__(self, frames, kind="text/event-stream"):
        self.headers, self._frames = {"Content-Type": kind}, frames

    async def send(self, out):
        self._rest = iter(self._frames)
        return self

    async def chunk(self):
        return next(self._rest, b"")

    def close(self):
        pass


def stream(wire):
    """One turn, a frame at a time, as an upstream of this format sends it."""
    encoder = WIRES[wire].encoder(Shown(model="m", request=asked(), same=False, id="up1", created=9))
    events = [ev.Meta("id_up"), *[ev.Text(piece) for piece in PIECES], ev.Finish("stop"), ev.Usage(input=9, output=5, total=14),
              ev.End()]
    data = b"".join(encoder.encode([event]) for event in events)
    return [frame + b"\n\n" for frame in data.split(b"\n\n")[:-1]]


async def told(surface, wire, frames):
    config = client_key() + f'[store]\nurl = "memory:"\n[[providers]]\nid = "up"\nwire = "{wire}"\nmodels = ["m"]\n' \
        'base_url = "http://127.0.0.1:9/v1"\napi_keys = ["sk-up-1234567"]\n'
    desk, _ = compose.build(loads(config, {}), journal=Journal())
    ground, door = desk.ground, DOORS[surface]
    ground.transports = dict.fromkeys(ground.transports, Frames(frames))
    call = Call(id="req_1", surface=door.name, wire=door.wire, operation=door.operation, started=ground.clock.now(), wall=9.0)
    client = Heard(Http(dump({"model": "m", "stream": True, **BODIES[surface]})), call, WIRES[door.wire], {}, None)
    await serve(call, client, ground)
    await asyncio.sleep(0)                           # then it is closed
    return call, client.heard


class Journal:
    def add(self, call):
        pass


@pytest.mark.parametrize("surface", sorted(DOORS))
@pytest.mark.parametrize("wire", UPSTREAMS)
async def test_every_word_arrives_with_its_frame(surface, wire):
    frames = stream(wire)
    call, heard = await told(surface, wire, frames)
    assert call.outcome == "ok" and call.finish == "stop" and call.usage.output == 5
    data = b"".join(heard)
    assert [data.count(piece.encode()) >= 1 for piece in PIECES] == [True] * len(PIECES)
    assert len(heard) >= len(PIECES)
    if WIRES[wire].name == DOORS[surface].wire and surface != "completions":
        assert data == b"".join(frames)
