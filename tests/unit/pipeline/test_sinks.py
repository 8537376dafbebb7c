"""What lost a race writes nothing, whoever wakes it."""
from types import SimpleNamespace

from gateway.core.events import Text
from gateway.pipeline.sinks import StreamSink


class Written:
    """A client to whom another target is talking already."""
    committed = True

    def __init__(self):
        self.frames = []

    async def write(self, data, now):
        self.frames.append(data)


async def test_a_timer_of_a_lost_attempt_does_not_reach_the_client():
    client = Written()
    x = SimpleNamespace(client=client, attempt=SimpleNamespace(committed=False), veil=None, notes=None, race=None,
                        ground=SimpleNamespace(clock=SimpleNamespace(now=lambda: 1.0),
                                               snapshot=SimpleNamespace(stream=SimpleNamespace(model_echo=""))))
    sink = StreamSink(x)
    sink.later([Text("too late")])
    await sink._task
    assert client.frames == []
