"""Several journals hear of every request; one that fails keeps nobody from hearing."""
from gateway.core.call import Call
from gateway.observe.journals import MAX_TOLD, Journals

CALL = Call(id="r", surface="chat", wire="openai-chat", operation="chat", started=1.0, wall=0.0, outcome="ok")


class Heard:
    def __init__(self):
        self.calls, self.closed = [], False

    def add(self, call):
        self.calls.append(call)

    async def close(self):
        self.closed = True


class Broken:
    def add(self, call):
        raise OSError("no room")

    async def close(self):
        raise OSError("still no room")


async def test_everybody_hears_of_it_though_one_fails(caplog):
    one, two = Heard(), Heard()
    journals = Journals(one, Broken(), two)
    for _ in range(MAX_TOLD + 5):
        journals.add(CALL)
    assert len(one.calls) == len(two.calls) == MAX_TOLD + 5
    assert caplog.text.count("Broken cannot note a request") == MAX_TOLD
    await journals.close()
    assert one.closed and two.closed and "did not close properly" in caplog.text
