"""Responses that are kept: gone on from, read, listed, deleted; by nobody but their owner; also after a restart."""
import json

import aiohttp
import pytest

from gateway.core.errors import GatewayError
from gateway.mock import script as say
from gateway.surfaces.responses_state import page
from tests.conftest import client_key, provider
from tests.talk import AUTH, ask

RESPONSES = "/v1/responses"
BOB = {"Authorization": "Bearer gw-bob"}
KEYS = client_key() + client_key("bob", "gw-bob")
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object"}}
CHAT_CALL = say.reply(None, finish="tool_calls", tool_calls=[{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}])


def wire_reply(text="hello", id_="resp_up", **more):
    """A Responses upstream's whole answer."""
    return {"id": id_, "object": "response", "created_at": 5, "status": "completed", "model": "m", "x_own": 1.50, "output": [
        {"id": "msg_up", "type": "message", "status": "completed", "role": "assistant", "content": [
            {"type": "output_text", "text": text, "annotations": []}]}],
        "previous_response_id": None, "store": False, "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}, **more}


def wire_stream(text="hello", id_="resp_up"):
    """The same as a stream."""
    done = wire_reply(text, id_)
    [item] = done["output"]
    opened = {**done, "status": "in_progress", "output": [], "usage": None}
    at = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    frames = [("response.created", {"response": opened}), ("response.in_progress", {"response": opened}),
              ("response.output_item.added", {"output_index": 0, "item": {**item, "status": "in_progress", "content": []}}),
              ("response.content_part.added", {**at, "part": {"type": "output_text", "text": "", "annotations": []}}),
              ("response.output_text.delta", {**at, "delta": text, "logprobs": []}),
              ("response.output_text.done", {**at, "text": text, "logprobs": []}),
              ("response.content_part.done", {**at, "part": item["content"][0]}),
              ("response.output_item.done", {"output_index": 0, "item": item}),
              ("response.completed", {"response": done})]
    said = [say.Send(b"event: %b\ndata: %b\n\n" % (kind.encode(), json.dumps({"type": kind, "sequence_number": n, **fields}).encode()))
            for n, (kind, fields) in enumerate(frames)]
    return say.script(say.Head(200, say.SSE), *said, say.End())


@pytest.fixture
def start(gateway, upstream, tmp_path):
    """A gateway with one upstream; ``start.up`` is it. Called again it is another process on the same store."""
    async def start(answer=None, wire="openai-chat", store=""):
        if not hasattr(start, "up"):
            start.up = await upstream(answer or say.reply("hello"))
        url = f'[store]\nurl = "sqlite:{tmp_path}/state/x.db"\n' if store == "sqlite" else ""
        return await gateway(KEYS + url + provider(start.up, wire=f'"{wire}"'))
    return start


async def said(base_url, input_="hi", headers=None, stream=None, **more):
    return await ask(base_url, {"model": "m", "input": input_, **more}, path=RESPONSES, headers=headers, stream=stream)


async def got(base_url, id_, rest="", headers=None, method="GET"):
    return await ask(base_url, path=f"{RESPONSES}/{id_}{rest}", headers=headers, method=method)


def missing(answer, code):
    return answer.status == 404 and answer.error["code"] == code and answer.error["type"] == "invalid_request_error"


# ---------------------------------------------------------------- going on
@pytest.mark.parametrize("stream", [False, True])
async def test_a_response_goes_on_from_another(start, stream):
    base_url = await start(lambda asked: say.stream("hel", "lo") if asked.json().get("stream") else say.reply("hello"))
    first = await said(base_url, "my name is Zoe", stream=stream)
    body = first.frames[-1]["response"] if stream else first.json
    second = await said(base_url, "who am I?", previous_response_id=body["id"], stream=stream)
    after = second.frames[-1]["response"] if stream else second.json
    assert after["previous_response_id"] == body["id"] and after["id"] != body["id"]
    third = await said(base_url, "sure?", previous_response_id=after["id"])
    assert third.status == 200
    roles = [(m["role"], m["content"]) for m in start.up.requests[-1].json()["messages"]]
    assert roles == [("user", "my name is Zoe"), ("assistant", "hello"), ("user", "who am I?"), ("assistant", "hello"), ("user", "sure?")]


async def test_a_call_is_answered_in_the_next_request(start):
    base_url = await start([CHAT_CALL, say.reply("done")])
    first = await said(base_url, "weather?", tools=[TOOL])
    [call] = first.json["output"]
    second = await said(base_url, [{"type": "function_call_output", "call_id": call["call_id"], "output": "21C"}], tools=[TOOL],
                        previous_response_id=first.json["id"])
    assert second.json["output"][0]["content"][0]["text"] == "done"
    assert [m["role"] for m in start.up.requests[1].json()["messages"]] == ["user", "assistant", "tool"]


async def test_instructions_are_not_carried_over(start):
    base_url = await start()
    first = await said(base_url, instructions="Be a pirate.")
    await said(base_url, previous_response_id=first.json["id"])
    assert "pirate" not in start.up.requests[1].body.decode()


async def test_items_of_earlier_responses_can_be_named(start):
    base_url = await start()
    first = await said(base_url)
    [item] = first.json["output"]
    reference = [{"type": "item_reference", "id": item["id"]}, {"role": "user", "content": "and?"}]
    assert (await said(base_url, reference)).status == 200
    assert [m["content"] for m in start.up.requests[1].json()["messages"]] == ["hello", "and?"]
    assert missing(await said(base_url, reference, headers=BOB), "previous_response_not_found")
    assert len(start.up.requests) == 2


@pytest.mark.parametrize("field", [{"previous_response_id": "resp_nowhere"}, {"conversation": "conv_nowhere"},
                                   {"input_": [{"type": "item_reference", "id": "msg_nowhere"}]}])
async def test_what_was_not_issued_here_is_not_found_and_nobody_is_asked(start, field):
    base_url = await start()
    answer = await said(base_url, **field)
    assert missing(answer, "previous_response_not_found") and start.up.requests == []
    if "previous_response_id" in field:
        assert answer.error["message"] == "Previous response with id 'resp_nowhere' not found."
        assert answer.error["param"] == "previous_response_id"


async def test_nobody_goes_on_from_somebody_elses(start):
    base_url = await start()
    id_ = (await said(base_url)).json["id"]
    assert missing(await said(base_url, previous_response_id=id_, headers=BOB), "previous_response_not_found")


async def test_a_dialogue_with_a_hole_is_not_gone_on_with(start):
    base_url = await start()
    first = (await said(base_url)).json["id"]
    second = (await said(base_url, previous_response_id=first)).json["id"]
    await got(base_url, first, method="DELETE")
    answer = await said(base_url, previous_response_id=second)
    assert missing(answer, "previous_response_not_found") and first in answer.error["message"]


async def test_what_is_not_stored_is_not_there(start):
    base_url = await start()
    answer = await said(base_url, store=False)
    assert answer.json["store"] is False
    assert (await got(base_url, answer.json["id"])).status == 404
    assert missing(await said(base_url, previous_response_id=answer.json["id"]), "previous_response_not_found")


async def test_it_is_all_there_after_a_restart(gateway, start):
    base_url = await start(store="sqlite")
    first = (await said(base_url, "my name is Zoe")).json
    await gateway.listener.close(0)
    base_url = await start(store="sqlite")
    assert (await got(base_url, first["id"])).json == first
    second = await said(base_url, "who?", previous_response_id=first["id"])
    assert "Zoe" in start.up.requests[-1].body.decode()
    await got(base_url, first["id"], method="DELETE")
    await gateway.listener.close(0)
    base_url = await start(store="sqlite")
    assert (await got(base_url, first["id"])).status == 404
    assert (await got(base_url, second.json["id"])).status == 200


# ---------------------------------------------------------------- an upstream of the same format
@pytest.mark.parametrize("stream", [False, True])
async def test_an_upstream_of_the_format_keeps_nothing_and_learns_no_ids_of_ours(start, stream):
    base_url = await start(lambda asked: wire_stream() if asked.json()["stream"] else say.body_of(json.dumps(wire_reply()).encode()),
                           wire="openai-responses")
    first = await said(base_url, "my name is Zoe", stream=stream)
    body = first.frames[-1]["response"] if stream else first.json
    assert body["id"] != "resp_up" and body["store"] is True and body["x_own"] == 1.5
    if stream:
        assert {f["response"]["id"] for f in first.frames if "response" in f} == {body["id"]}
        assert [f["sequence_number"] for f in first.frames] == list(range(9))
    second = await said(base_url, "who?", previous_response_id=body["id"], stream=stream)
    after = second.frames[-1]["response"] if stream else second.json
    assert after["previous_response_id"] == body["id"] and after["id"] not in (body["id"], "resp_up")
    asked = start.up.requests[1].json()
    assert "previous_response_id" not in asked and asked["store"] is False
    assert [i["role"] for i in asked["input"]] == ["user", "assistant", "user"]
    assert (await got(base_url, body["id"])).json == body


async def test_without_storing_the_upstreams_own_bytes_come_through(start):
    raw = json.dumps(wire_reply()).encode()
    base_url = await start(say.body_of(raw), wire="openai-responses")
    assert (await said(base_url, store=False)).body == raw


# ---------------------------------------------------------------- how it ended
async def test_a_response_that_was_cut_short_is_kept_as_such(start):
    base_url = await start(say.reply("hel", finish="length"))
    answer = await said(base_url)
    assert answer.json["status"] == "incomplete"
    kept = (await got(base_url, answer.json["id"])).json
    assert kept["status"] == "incomplete" and kept["incomplete_details"] == {"reason": "max_output_tokens"}


async def test_a_response_that_broke_is_kept_with_its_error(start):
    base_url = await start(say.half_frame("hel", "lo"))
    answer = await said(base_url, stream=True)
    assert answer.frames[-1]["type"] == "response.failed"
    told = answer.frames[-1]["response"]
    assert (await got(base_url, told["id"])).json == told
    assert told["status"] == "failed" and told["error"]["message"]


async def test_nothing_is_kept_of_what_never_began(start, gateway):
    base_url = await start(say.error(400, "no such thing"))
    assert (await said(base_url)).status == 400
    assert len(gateway.listener.parts.store.responses) == 0


async def test_nothing_is_kept_when_the_client_was_gone(start, gateway):
    base_url = await start(say.stream("hello", delay_s=0.05))
    async with aiohttp.ClientSession() as session:
        async with session.post(base_url + RESPONSES, json={"model": "m", "input": "hi", "stream": True}, headers=AUTH) as answer:
            await answer.content.readany()
            answer.close()
    await gateway.listener.close(5)
    assert len(gateway.listener.parts.store.responses) == 0


# ---------------------------------------------------------------- reading, listing, deleting
async def test_a_response_can_be_read_as_it_was_told(start):
    base_url = await start()
    told = (await said(base_url, metadata={"a": "b"})).json
    assert (await got(base_url, told["id"])).json == told
    assert (await got(base_url, told["id"], "?include=x")).json == told
    assert (await got(base_url, told["id"], "?stream=true")).error["param"] == "stream"


async def test_a_deleted_response_is_gone(start):
    base_url = await start()
    id_ = (await said(base_url)).json["id"]
    assert (await got(base_url, id_, method="DELETE")).json == {"id": id_, "object": "response", "deleted": True}
    for method in ("GET", "DELETE"):
        answer = await got(base_url, id_, method=method)
        assert answer.status == 404 and answer.error["message"] == f"Response with id '{id_}' not found."


async def test_somebody_elses_response_is_as_good_as_unknown(start):
    base_url = await start()
    id_ = (await said(base_url)).json["id"]
    for rest, method in (("", "GET"), ("/input_items", "GET"), ("", "DELETE"), ("/cancel", "POST")):
        assert (await got(base_url, id_, rest, BOB, method)).status == 404
    assert (await got(base_url, id_)).status == 200
    assert (await got(base_url, id_, headers={})).status == 401


async def test_input_is_listed_newest_first(start):
    base_url = await start()
    first = await said(base_url, "a")
    second = await said(base_url, [{"role": "user", "content": "b"}, {"role": "user", "content": "c"}], previous_response_id=first.json["id"])
    listed = (await got(base_url, second.json["id"], "/input_items")).json
    assert [i["content"][0]["text"] for i in listed["data"]] == ["c", "b"] and listed["object"] == "list"
    assert (listed["first_id"], listed["last_id"]) == (listed["data"][0]["id"], listed["data"][1]["id"]) and listed["has_more"] is False
    assert (await got(base_url, second.json["id"], "/input_items?limit=0")).error["param"] == "limit"


async def test_there_is_nothing_to_cancel(start):
    base_url = await start()
    id_ = (await said(base_url)).json["id"]
    answer = await got(base_url, id_, "/cancel", method="POST")
    assert answer.status == 400 and answer.error["message"] == "Cannot cancel a synchronous response."
    assert (await got(base_url, "resp_no", "/cancel", method="POST")).status == 404
    assert (await got(base_url, id_, "/nonsense", method="POST")).status == 404
    assert (await got(base_url, id_, "/nonsense")).status == 404


async def test_background_is_refused_by_name(start):
    base_url = await start()
    answer = await said(base_url, background=True)
    assert answer.status == 400 and answer.error["param"] == "background" and "background" in answer.error["message"]


async def test_input_is_counted_with_everything_before_it(start):
    base_url = await start()
    first = await said(base_url, "word " * 500)
    path = RESPONSES + "/input_tokens"
    alone = (await ask(base_url, {"model": "m", "input": "hi"}, path=path)).json
    whole = (await ask(base_url, {"model": "m", "input": "hi", "previous_response_id": first.json["id"]}, path=path)).json
    assert alone["object"] == "response.input_tokens" and 0 < alone["input_tokens"] < 20
    assert whole["input_tokens"] > 400
    unknown = await ask(base_url, {"model": "m", "input": "hi", "previous_response_id": "resp_no"}, path=path)
    assert missing(unknown, "previous_response_not_found")
    assert len(start.up.requests) == 1


async def test_a_socket_is_declined_in_a_way_that_clients_understand(start):
    base_url = await start()
    asks = {**AUTH, "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "eA==", "Sec-WebSocket-Version": "13"}
    answer = await ask(base_url, path=RESPONSES, method="GET", headers=asks)
    assert answer.status == 426 and answer.error["code"] == "upgrade_required"
    plain = await ask(base_url, path=RESPONSES, method="GET")
    assert plain.status == 405 and plain.headers["Allow"] == "POST, OPTIONS"


# ---------------------------------------------------------------- pages
ITEMS = [{"id": f"i{n}"} for n in range(5)]


@pytest.mark.parametrize(("query", "ids", "more"), [
    ({}, [4, 3, 2, 1, 0], False),
    ({"order": "asc", "limit": "2"}, [0, 1], True),
    ({"order": "asc", "limit": "2", "after": "i1"}, [2, 3], True),
    ({"order": "asc", "limit": "2", "after": "i2"}, [3, 4], False),
    ({"after": "i1"}, [0], False),
    ({"after": "i0"}, [], False),
])
def test_pages_follow_each_other(query, ids, more):
    made = page(ITEMS, query)
    assert [item["id"] for item in made["data"]] == [f"i{n}" for n in ids] and made["has_more"] is more


@pytest.mark.parametrize(("name", "value"), [("order", "up"), ("limit", "0"), ("limit", "101"), ("limit", "x"), ("limit", "-1"),
                                             ("limit", "9" * 30), ("limit", "²"), ("after", "i9")])
def test_a_page_that_cannot_be_is_refused_by_name(name, value):
    with pytest.raises(GatewayError) as refused:
        page(ITEMS, {name: value})
    assert (refused.value.status, refused.value.param) == (400, name)
