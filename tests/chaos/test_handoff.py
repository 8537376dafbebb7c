"""A session whose next answer comes from another model: what that model is told, in every language, and what nobody else sees."""
import json

import pytest

from gateway.mock import script as say
from gateway.tokens.estimate import reserve
from tests.conftest import client_key, provider
from tests.talk import AUTH, ask

MARK = "<context_handoff>"
SESSION = {**AUTH, "X-Session-Id": "one"}
USER, MODEL, MORE = "Fix the tests please.", "I mended two of three.", "And the third?"


def chat(*said, system="Be brief."):
    roles = ["user", "assistant"] * 2
    return [{"role": "system", "content": system}] * bool(system) + [{"role": r, "content": w} for r, w in zip(roles, said, strict=False)]


# path of a client -> the body of a request that says this
CLIENTS = {
    "/v1/chat/completions": lambda *said: {"model": "best", "messages": chat(*said)},
    "/v1/responses": lambda *said: {"model": "best", "instructions": "Be brief.", "input": chat(*said, system=""), "store": False},
    "/v1/messages": lambda *said: {"model": "best", "max_tokens": 99, "system": "Be brief.", "messages": chat(*said, system="")},
    "/v1beta/models/best:generateContent": lambda *said: {
        "system_instruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": r, "parts": [{"text": w}]} for r, w in zip(["user", "model", "user"], said, strict=False)]},
    "/api/chat": lambda *said: {"model": "best", "messages": chat(*said)},
}
# wire of an upstream -> where its language keeps instructions
UPSTREAMS = {
    "openai-chat": lambda doc: doc["messages"][0], "openai-responses": lambda doc: doc["instructions"],
    "anthropic": lambda doc: doc["system"], "gemini": lambda doc: doc["systemInstruction"], "ollama": lambda doc: doc["messages"][0],
    "cohere": lambda doc: doc["messages"][0], "bedrock-converse": lambda doc: doc["system"],
}


async def house(gateway, upstream, answers, wire="openai-chat", b='["large"]', combo="", more='[routing]\nhandoff = "on-switch"\n'):
    up_a, up_b = await upstream(answers), await upstream(say.reply("from b"))
    base_url = await gateway(
        client_key() + provider(up_a, "a", '["small"]', '["sk-a-123456"]')
        + provider(up_b, "b", b, '["sk-b-123456"]', wire=f'"{wire}"', auth='"bearer"')
        + f'[[combos]]\nname = "best"\ntargets = ["a/small", "b/*"]\n{combo}\n[ollama]\nmode = "key"\n' + more)
    return base_url, up_a, up_b


@pytest.mark.parametrize("path", CLIENTS)
@pytest.mark.parametrize("wire", UPSTREAMS)
async def test_the_model_that_takes_over_is_told_so(gateway, upstream, wire, path):
    base_url, up_a, up_b = await house(gateway, upstream, [say.reply(MODEL), say.error(500)], wire)
    body = CLIENTS[path]
    assert (await ask(base_url, body(USER), path=path, stream=False, headers=SESSION)).status == 200
    await ask(base_url, body(USER, MODEL, MORE), path=path, stream=False, headers=SESSION)
    assert all(MARK.encode() not in asked.body for asked in up_a.requests), "whom the session knows needs no note"
    told = json.dumps(UPSTREAMS[wire](up_b.requests[-1].json()))
    assert told.index("Be brief.") < told.index(MARK) < told.index("small") < told.index("large")
    assert f"User: {USER}" in told and f"Assistant: {MODEL}" in told
    assert up_b.requests[-1].body.count(MARK.encode()) == 1
    assert up_b.requests[-1].body.count(MORE.encode()) == 1, "the newest message stands for itself"


async def turns(base_url, *bodies, path="/v1/chat/completions", headers=SESSION):
    return [await ask(base_url, CLIENTS[path](*said), path=path, stream=False, headers=headers) for said in bodies]


@pytest.mark.parametrize(("changes", "why"), [
    ({"more": ""}, "it is off"),
    ({"combo": 'handoff = "off"'}, "this combo says no"),
    ({"b": '["small"]'}, "the model is the same at another provider"),
])
async def test_there_is_no_note_where(gateway, upstream, changes, why):
    base_url, _, up_b = await house(gateway, upstream, [say.reply(MODEL), say.error(500)], **changes)
    await turns(base_url, [USER], [USER, MODEL, MORE])
    assert up_b.requests and MARK.encode() not in up_b.requests[-1].body, why


async def test_a_combo_that_relays_hands_over_by_itself(gateway, upstream):
    base_url, _, up_b = await house(gateway, upstream, [say.reply(MODEL), say.error(500)], combo='strategy = "context-relay"', more="")
    await turns(base_url, [USER], [USER, MODEL, MORE])
    assert MARK.encode() in up_b.requests[-1].body


async def test_another_session_and_a_new_beginning_get_none(gateway, upstream):
    base_url, _, up_b = await house(gateway, upstream, [say.reply(MODEL), say.error(500)])
    await turns(base_url, [USER])
    await turns(base_url, [USER, MODEL, MORE], headers={**AUTH, "X-Session-Id": "two"})
    await turns(base_url, [USER])
    await turns(base_url, [USER, MODEL, MORE], headers={**AUTH, "X-Session-Id": "two"})
    assert len(up_b.requests) == 3
    assert all(MARK.encode() not in asked.body for asked in up_b.requests)


async def test_the_new_model_is_told_once_and_then_is_the_session_s_own(gateway, upstream):
    base_url, _, up_b = await house(gateway, upstream, [say.reply(MODEL), say.error(500)])
    await turns(base_url, [USER], [USER, MODEL, MORE], [USER, MODEL, MORE])
    assert [MARK.encode() in asked.body for asked in up_b.requests] == [True, False]


async def test_what_is_kept_of_a_response_holds_no_note(gateway, upstream):
    base_url, _, up_b = await house(gateway, upstream, [say.reply(MODEL), say.error(500)])
    first = await ask(base_url, {"model": "best", "input": USER}, path="/v1/responses", headers=SESSION)
    then = await ask(base_url, {"model": "best", "input": MORE, "previous_response_id": first.json["id"]}, path="/v1/responses",
                     headers=SESSION)
    assert MARK.encode() in up_b.requests[-1].body
    kept = await ask(base_url, path=f"/v1/responses/{then.json['id']}/input_items", method="GET")
    assert MORE.encode() in kept.body
    assert MARK.encode() not in kept.body + then.body


async def test_a_note_is_bounded_and_gives_way_where_there_is_no_room(gateway, upstream):
    long = "word " * 4_000
    base_url, _, up_b = await house(gateway, upstream, [say.reply(MODEL), say.error(500)])
    await turns(base_url, [long], [long, long, MORE])
    doc = up_b.requests[-1].json()
    assert len(doc["messages"][0]["content"]) < 6_100
    assert doc["messages"][1]["content"] == long


@pytest.mark.parametrize(("room", "told"), [(400, [MARK, "What was said last"]), (150, [MARK]), (20, [])])
async def test_a_small_model_gets_what_it_has_room_for(gateway, upstream, room, told):
    said = ["alpha " * 80, "gamma " * 80, MORE]
    context = sum(map(len, ["Be brief.", *said])) // 4 + 1 + reserve(None) + room
    base_url, _, up_b = await house(gateway, upstream, [say.reply(MODEL), say.error(500)], b=f'[{{id = "large", context = {context}}}]')
    await turns(base_url, said[:1], said)
    words = up_b.requests[-1].json()["messages"][0]["content"]
    assert [word for word in (MARK, "What was said last") if word in words] == told
