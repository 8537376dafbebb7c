"""The chat format as it is written, for a reviewer's eye: streams of several upstream habits, each through the real turn.

``NAME.in.sse`` is what the upstream sends; ``NAME.same.sse`` what a chat client gets from a chat upstream, ``NAME.built.sse`` what it
gets where no frame may pass on. GOLDEN=write rewrites the last two; read the difference before committing it.
"""
import os
from pathlib import Path

import pytest

from gateway.core import events as ev
from gateway.core.errors import GatewayError
from gateway.stream.turn import Rules, Turn
from tests.unit.wire.frames import CHAT, shown

FILES = Path(__file__).parent / "openai_chat"
NAMES = sorted(path.name.removesuffix(".in.sse") for path in FILES.glob("*.in.sse"))
WEATHER = {"get_weather": {"type": "object", "properties": {"city": {"type": "string"}}}}


def through(data: bytes, same: bool, size: int) -> bytes:
    decoder = CHAT.decoder(same, "routed-model", 1 << 20)
    encoder = CHAT.encoder(shown(model="routed-model", same=same, include_usage=True))
    turn = Turn(Rules(tools=WEATHER), 0.0)
    out: list[ev.Event] = []
    for at in range(0, len(data), size):
        out += turn.feed(decoder.feed(data[at:at + size]), 1.0)
    if not turn.done:
        out += turn.feed(decoder.close(), 1.0)
    out += turn.eof(1.0)
    if turn.fault is not None and not out:
        out = [ev.Fault(GatewayError(turn.fault.kind, f"before the commit point: {turn.fault.message}"))]
    return encoder.encode(out)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("same", [True, False], ids=["same", "built"])
def test_a_stream_is_written_as_before(name, same):
    data = (FILES / f"{name}.in.sse").read_bytes()
    file = FILES / f"{name}.{'same' if same else 'built'}.sse"
    written = through(data, same, len(data))
    if os.environ.get("GOLDEN") == "write":
        file.write_bytes(written)
    assert written == file.read_bytes()
    assert through(data, same, 1) == written


def test_every_input_has_been_looked_at():
    assert len(NAMES) >= 6
