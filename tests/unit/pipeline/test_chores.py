"""Which requests are chores of a client's own? Titles and short summaries that say so; nobody's real work."""
import pytest

from gateway.mock import script as say
from gateway.pipeline.chores import chore
from gateway.wire import WIRES
from gateway.wire.lenient import dump
from tests.conftest import client_key, provider
from tests.talk import ASK, AUTH, ask
from tests.unit.config.files import PROVIDER, refused

TITLE = "Generate a concise title, 3-5 words, for this conversation. Return the title only."


def chat(user, system="", **more):
    messages = [{"role": "system", "content": system}] * bool(system) + [{"role": "user", "content": user}]
    return WIRES["openai-chat"].parse_request(dump({"model": "m", "messages": messages, **more}))


@pytest.mark.parametrize(("user", "system"), [
    (TITLE, ""),
    ("How do I sort a list?", "You are a title generator. You write one short title for the thread and nothing else."),
    ("fix the login", "Does this message begin a new topic of the conversation? Then extract a title of two or three words as JSON."),
    ("Summarize this coding session in under 50 characters:\nfix login", ""),
    ("Write a one-line summary of the conversation below.\n\nUser: hi\nAssistant: hello", ""),
])
def test_a_short_prompt_that_asks_for_a_title_or_a_summary_is_one(user, system):
    assert chore(chat(user, system))


@pytest.mark.parametrize(("user", "system"), [
    ("Write a title for my novel about whales.", ""),
    ("Summarize the history of Rome.", ""),
    ("Summarize our conversation in detail, with all decisions, so that another engineer can go on.", ""),
    ("Give the chat window a name attribute and rename its methods.", ""),
    ("hi", "You are a helpful assistant. Keep the conversation brief."),
])
def test_real_questions_are_none(user, system):
    assert not chore(chat(user, system))


@pytest.mark.parametrize("more", [
    {"tools": [{"type": "function", "function": {"name": "f"}}]}, {"max_tokens": 8_000}, {"n": 2}])
def test_who_offers_tools_or_wants_much_does_real_work(more):
    assert not chore(chat(TITLE, **more))


def test_a_long_one_or_one_with_pictures_is_none():
    assert not chore(chat(TITLE + " word" * 4_000))
    picture = {"type": "image_url", "image_url": {"url": "https://a.example/x.png"}}
    assert not chore(chat([{"type": "text", "text": TITLE}, picture]))


@pytest.mark.parametrize(("wire", "body"), [
    ("anthropic", {"model": "m", "max_tokens": 99, "system": [{"type": "text", "text": TITLE}], "messages": [{"role": "user", "content": "x"}]}),
    ("openai-responses", {"model": "m", "instructions": TITLE, "input": "x"}),
    ("gemini", {"systemInstruction": {"parts": [{"text": TITLE}]}, "contents": [{"role": "user", "parts": [{"text": "x"}]}]}),
    ("ollama", {"model": "m", "messages": [{"role": "system", "content": TITLE}, {"role": "user", "content": "x"}]}),
    ("ollama", {"model": "m", "prompt": TITLE}),
])
def test_every_language_can_say_it(wire, body):
    operation = "generate" if "prompt" in body else "chat"
    assert chore(WIRES[wire].parse_request(dump(body), operation, "m", False))


# ---------------------------------------------------------------- through the whole gateway
MAP = '[routing]\nstrategy = "round-robin"\nbackground_models = {"*" = "cheap/small"}\n'


async def house(gateway, upstream, small, routing=MAP, key=""):
    cheap, dear = await upstream(small), await upstream(say.reply("dear"))
    base_url = await gateway((key or client_key()) + provider(dear, "dear", '["big"]', '["sk-a-123456"]')
                             + provider(cheap, "cheap", '["small"]', '["sk-b-123456"]') + routing)
    return base_url, cheap, dear


def wanted(text, **more):
    return {"model": "dear/big", "messages": [{"role": "user", "content": text}], **more}


async def test_a_chore_goes_to_the_cheap_model_and_everything_else_where_it_was_meant(gateway, upstream):
    base_url, cheap, dear = await house(gateway, upstream, say.reply("cheap"))
    via = [(await ask(base_url, body, stream=False)).headers["X-Routed-Via"] for body in (
        wanted(TITLE), wanted("Fix it"), wanted(TITLE, tools=[{"type": "function", "function": {"name": "f"}}]))]
    assert via == ["cheap/small", "dear/big", "dear/big"]


async def test_without_the_setting_nothing_is_looked_at(gateway, upstream):
    base_url, cheap, _ = await house(gateway, upstream, say.reply("cheap"), routing="")
    assert (await ask(base_url, wanted(TITLE), stream=False)).headers["X-Routed-Via"] == "dear/big"


async def test_who_was_asked_for_answers_where_the_cheap_one_fails(gateway, upstream):
    base_url, cheap, dear = await house(gateway, upstream, say.error(500))
    got = await ask(base_url, wanted(TITLE), stream=False)
    assert (got.status, got.headers["X-Routed-Via"], len(cheap.requests)) == (200, "dear/big", 1)


async def test_a_key_that_may_not_use_the_cheap_model_does_not(gateway, upstream):
    base_url, cheap, _ = await house(gateway, upstream, say.reply("cheap"), key=client_key(models='["dear/*"]'))
    assert (await ask(base_url, wanted(TITLE), stream=False)).headers["X-Routed-Via"] == "dear/big"
    assert not cheap.requests


async def test_the_session_of_the_dialogue_is_not_moved(gateway, upstream):
    base_url, cheap, dear = await house(gateway, upstream, say.reply("cheap"),
                                        MAP.replace("round-robin", "priority"))
    session = {**AUTH, "X-Session-Id": "one"}
    via = [(await ask(base_url, {**ASK, "model": "auto", "messages": [{"role": "user", "content": text}]}, stream=False, headers=session))
           .headers["X-Routed-Via"] for text in ("Fix it", TITLE, "Go on")]
    assert via == ["dear/big", "cheap/small", "dear/big"]


def test_a_model_that_nobody_serves_is_refused():
    assert list(refused(PROVIDER + '[routing]\nbackground_models = {"gpt-*" = "a/none"}\n')) == ["routing.background_models.gpt-*"]
