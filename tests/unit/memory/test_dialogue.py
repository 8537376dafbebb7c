"""Responses that go on from each other: the whole dialogue or nothing, and never what is too much."""
import json

import pytest

from gateway.core.errors import GatewayError
from gateway.memory import dialogue as subject
from gateway.memory.dialogue import continued, items_of, kept_of, stateful, stored
from gateway.store.memory import MemoryResponses
from gateway.wire import WIRES
from tests.unit.store.scene import StillClock


def asked(input_="hi", **more):
    return WIRES["openai-responses"].parse_request(json.dumps({"model": "m", "input": input_, **more}).encode())


def output(text="hello", id_="msg_1", **more):
    return {"id": id_, "type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": text}], **more}


def answered(id_, request, *items, target="lab/m"):
    body = json.dumps({"id": id_, "output": list(items)}).encode()
    return kept_of(id_, request, body, owner="ann", created=1_000_000.0, target=target)


@pytest.fixture
def shelf():
    return MemoryResponses(StillClock())


def test_most_requests_need_nothing_of_what_is_kept():
    assert not stateful(asked()) and stored(asked())
    assert not stored(asked(store=False))
    assert stateful(asked(previous_response_id="r1")) and stateful(asked([{"type": "item_reference", "id": "i"}, {"role": "user", "content": "x"}]))
    chat = WIRES["openai-chat"].parse_request(b'{"model":"m","messages":[{"role":"user","content":"hi"}]}')
    assert not stateful(chat) and not stored(chat)


async def test_the_dialogue_comes_oldest_first(shelf):
    first = asked("one")
    shelf.put(answered("r1", first, output("two")))
    second = asked("three", previous_response_id="r1")
    shelf.put(answered("r2", second, output("four", "msg_2")))
    made = await continued(asked("five", previous_response_id="r2"), "ann", shelf)
    texts = [item["content"] if isinstance(item["content"], str) else item["content"][0]["text"] for item in made.body.doc["input"]]
    assert texts == ["one", "two", "three", "four", "five"]
    assert "previous_response_id" not in json.loads(made.raw)


def test_a_response_is_kept_with_what_it_added_only():
    kept = answered("r2", asked("three", previous_response_id="r1"), output("four"))
    assert [item["role"] for item in items_of(kept)] == ["user", "assistant"]
    assert (kept.previous, kept.items) == ("r1", ("msg_1",))


async def test_encrypted_thinking_is_marked_with_its_maker(shelf):
    thinking = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "g"}
    shelf.put(answered("r1", asked(), thinking, output(), target="lab/org/m"))
    assert (await continued(asked(previous_response_id="r1"), "ann", shelf)).body.makers == {"rs_1": "lab"}


async def test_a_dialogue_that_is_too_deep_or_too_large_is_refused(shelf, monkeypatch):
    for n in range(4):
        shelf.put(answered(f"r{n}", asked(**({"previous_response_id": f"r{n - 1}"} if n else {})), output()))
    for limit, value in (("MAX_DEPTH", 3), ("MAX_BYTES", 100)):
        with monkeypatch.context() as patched:
            patched.setattr(subject, limit, value)
            with pytest.raises(GatewayError) as refused:
                await continued(asked(previous_response_id="r3"), "ann", shelf)
            assert (refused.value.status, refused.value.param) == (400, "previous_response_id")
    monkeypatch.setattr(subject, "MAX_DEPTH", 4)
    assert len((await continued(asked(previous_response_id="r3"), "ann", shelf)).body.doc["input"]) == 9


async def test_halves_of_characters_are_kept_and_come_back(shelf):
    request = WIRES["openai-responses"].parse_request(b'{"model":"m","input":"a \\ud83d b"}')
    body = b'{"id":"r1","output":[{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"\\ude00"}]}]}'
    shelf.put(kept_of("r1", request, body, owner="ann", created=1_000_000.0, target="lab/m"))
    made = await continued(asked(previous_response_id="r1"), "ann", shelf)
    assert len(made.body.doc["input"]) == 3
