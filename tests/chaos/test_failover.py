"""Whatever an upstream does before the commit point, the next one answers and the client sees one clean turn."""
import threading

import pytest

from gateway.mock import script as say
from tests.conftest import client_key, provider
from tests.talk import ASK, ask

QUICK = "[timeouts]\nconnect_s = 1\nfirst_byte_s = 0.3\nfirst_token_s = 0.6\nidle_s = 0.3\ntotal_s = 0.8\n"

BEFORE = {
    "reset before headers": say.reset_before_headers(),
    "close before headers": say.close_before_headers(),
    "reset after headers": say.reset_after_headers(),
    "silence": say.hang(),
    "headers, then silence": say.stall(),
    "half a frame": say.half_frame(),
    "html under 200": say.html(),
    "html under 502": say.html(502),
    "not http": say.garbage(),
    "headers byte by byte": say.slow_loris(),
    "json error under 200": say.error(200),
    "error frame first": say.script(say.Head(200, say.SSE), say.Send(say.frame(error={"message": "overloaded"}, choices=[]))),
    "role, then error frame": say.script(say.Head(200, say.SSE), say.Send(say.frame(role="assistant", content="")),
                                         say.Send(b'data: {"error": {"message": "boom", "code": 503}}\n\n')),
    "500": say.error(500),
    "503": say.error(503),
    "429": say.error(429),
    "401": say.error(401, "bad key"),
    "402": say.error(402, "no credits"),
    "404": say.error(404, "no such model"),
    "empty stream": say.stream(),
    "empty answer of length": say.stream(finish="length"),
    "eof without a frame": say.script(say.Head(200, say.SSE)),
    "comments only": say.script(say.Head(200, say.SSE), say.Send(b": ping\n\n"), say.End()),
    "cut json": say.cut_length(),
    "unparseable frames": say.script(say.Head(200, say.SSE), say.Send(b"data: {nope\n\n"), say.End()),
}


BEFORE["blank text for ever"] = say.script(
    say.Head(200, say.SSE), *[step for _ in range(40) for step in (say.Send(say.frame(" ")), say.Wait(0.05))])


async def two(gateway, upstream, bad, good="from b"):
    a, b = await upstream(bad), await upstream(say.stream(good) if isinstance(good, str) else good)
    base_url = await gateway(client_key() + provider(a, "a", keys='["sk-a-123456"]') + provider(b, "b", keys='["sk-b-123456"]') + QUICK)
    return a, b, base_url


@pytest.mark.parametrize("bad", BEFORE.values(), ids=BEFORE.keys())
async def test_a_failure_before_the_commit_point_moves_on_invisibly(gateway, upstream, bad):
    a, b, base_url = await two(gateway, upstream, bad)
    got = await ask(base_url, stream=True)
    assert (got.status, got.text, got.finishes, got.done, got.error) == (200, "from b", ["stop"], 1, None)
    assert got.headers["X-Routed-Via"] == "b/m"
    assert got.headers["X-Fallback-Attempts"] == "1"
    assert got.headers["X-Fallback-Trail"].startswith("a/m key1=")
    await a.until(lambda: not a.busy)
    assert gateway.listener.parts.transports["network"].open_connections() == 0


@pytest.mark.parametrize("bad", BEFORE.values(), ids=BEFORE.keys())
async def test_the_same_holds_for_whole_answers(gateway, upstream, bad):
    a, b, base_url = await two(gateway, upstream, bad)
    got = await ask(base_url, stream=False)
    assert got.status == 200
    assert got.json["choices"][0]["message"]["content"] == "from b"
    assert got.headers["X-Fallback-Attempts"] == "1"


@pytest.mark.parametrize("index", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", ["reset before headers", "headers, then silence", "json error under 200", "half a frame"])
async def test_the_chain_survives_a_failure_at_every_place(gateway, upstream, kind, index):
    ups = [await upstream(BEFORE[kind]) for _ in range(index)]
    good = await upstream(say.stream("made it"))
    base_url = await gateway(client_key() + QUICK + "".join(
        provider(up, f"p{i}", keys=f'["sk-p{i}-123456"]') for i, up in enumerate([*ups, good])))
    got = await ask(base_url, stream=True)
    assert (got.status, got.text, got.done) == (200, "made it", 1)
    assert got.headers.get("X-Fallback-Attempts", "0") == str(index)


AFTER = {
    "reset": lambda: say.stream("one ", "two").but(say.Wait(0.05), say.Reset(), after=3),
    "stall": lambda: say.stall("one ", "two"),
    "half a frame": lambda: say.half_frame("one ", "two"),
    "eof": lambda: say.stream("one ", "two").but(say.End(), after=3),
    "cut chunk": lambda: say.cut_chunked("one ", "two"),
    "error frame": lambda: say.stream("one ", "two").but(
        say.Send(b'data: {"error": {"message": "boom sk-a-123456 http://10.0.0.1/x", "code": 500}}\n\n'), after=3),
}


@pytest.mark.parametrize("bad", AFTER.values(), ids=AFTER.keys())
async def test_a_failure_after_the_commit_point_is_told_and_nothing_is_repeated(gateway, upstream, bad):
    a, b, base_url = await two(gateway, upstream, bad())
    got = await ask(base_url, stream=True)
    assert (got.status, got.text, got.broken) == (200, "one two", "")
    assert got.error is not None and got.error["type"] == "stream_error"
    assert got.finishes == [] and got.done == 1
    assert "sk-a-123456" not in got.body.decode() and "10.0.0.1" not in got.body.decode()
    assert not b.requests
    await a.until(lambda: not a.busy)
    assert gateway.listener.parts.transports["network"].open_connections() == 0
    assert gateway.listener.parts.inflight.count == 0


async def test_comments_after_a_finish_reason_do_not_keep_the_client_waiting(gateway, upstream, monkeypatch):
    monkeypatch.setattr("gateway.pipeline.attempt.GOODBYE_S", 0.2)
    up = await upstream(say.stream("all").but(
        *[step for _ in range(100) for step in (say.Send(b": busy\n\n"), say.Wait(0.05))], after=3))
    base_url = await gateway(client_key() + provider(up))
    got = await ask(base_url, stream=True)
    assert (got.text, got.finishes, got.done, got.error) == ("all", ["stop"], 1, None)
    await up.until(lambda: not up.busy)


async def test_without_done_after_error_the_stream_just_ends(gateway, upstream):
    a = await upstream(AFTER["error frame"]())
    base_url = await gateway(client_key() + provider(a) + "[stream]\ndone_after_error = false\n")
    got = await ask(base_url, stream=True)
    assert got.error is not None and got.done == 0


async def test_a_body_fault_is_returned_at_once_in_the_upstreams_words(gateway, upstream):
    refusal = say.error(400, "messages: field required", type="invalid_request_error", param="messages")
    a, b, base_url = await two(gateway, upstream, refusal)
    got = await ask(base_url, stream=True)
    assert got.status == 400
    assert got.error["message"] == "messages: field required" and got.error["param"] == "messages"
    assert not b.requests


async def test_every_key_is_tried_and_a_bad_one_rests(gateway, upstream):
    up = await upstream(lambda asked: say.stream("ok") if asked.headers["authorization"].endswith("good-key-9") else
                        say.error(401, "invalid api key"))
    base_url = await gateway(client_key() + provider(up, keys='["bad-key-1", "bad-key-2", "good-key-9"]'))
    first = await ask(base_url, stream=True)
    assert first.text == "ok" and first.headers["X-Fallback-Trail"] == "up/m key1=auth; up/m key2=auth"
    second = await ask(base_url, stream=True)
    assert second.text == "ok" and "X-Fallback-Trail" not in second.headers


@pytest.mark.parametrize("status, kind", [(401, "provider_authentication_failed"), (429, "rate_limit_exceeded"),
                                          (500, "upstream_failed"), (404, "model_not_found")])
async def test_all_alike_gives_that_cause_its_own_status(gateway, upstream, status, kind):
    a, b = await upstream(say.error(status)), await upstream(say.error(status))
    base_url = await gateway(client_key() + provider(a, "a") + provider(b, "b"))
    got = await ask(base_url)
    assert got.status == {401: 502, 429: 429, 500: 502, 404: 404}[status]
    assert got.error["code"] == kind
    assert got.headers["X-Fallback-Attempts"] == "2"
    if status == 429:
        assert int(got.headers["Retry-After"]) >= 1 and int(got.headers["retry-after-ms"]) > 0


async def test_a_stated_time_is_believed_and_then_the_target_is_asked_again(gateway, upstream):
    up = await upstream([say.error(429, headers={"Retry-After": "2"}), say.stream("back")])
    base_url = await gateway(client_key() + provider(up))
    first = await ask(base_url)
    assert first.status == 429 and first.headers["Retry-After"] == "2"
    assert (await ask(base_url)).status == 429 and len(up.requests) == 1
    import asyncio
    await asyncio.sleep(2.05)
    assert (await ask(base_url, stream=True)).text == "back"


async def test_reasoning_alone_is_delivered_when_nobody_is_left(gateway, upstream):
    thinking = say.script(say.Head(200, say.SSE), say.Send(say.frame(reasoning_content="hmm")), say.Send(say.frame(finish="stop")),
                          say.Send(say.DONE))
    up = await upstream(thinking)
    base_url = await gateway(client_key() + provider(up))
    got = await ask(base_url, stream=True)
    assert got.status == 200 and got.finishes == ["stop"] and "hmm" in got.body.decode() and got.done == 1


async def test_a_refused_tool_call_is_rescued_from_the_error(gateway, upstream):
    up = await upstream(say.error(400, "Failed to call a function.", code="tool_use_failed",
                                  failed_generation='<function=look>{"at": "sea"}</function>'))
    base_url = await gateway(client_key() + provider(up))
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    got = await ask(base_url, {**ASK, "tools": [tool]})
    call = got.json["choices"][0]["message"]["tool_calls"][0]
    assert (call["function"]["name"], call["function"]["arguments"]) == ("look", '{"at": "sea"}')
    assert got.json["choices"][0]["finish_reason"] == "tool_calls"


async def test_json_answered_to_a_stream_request_becomes_a_stream(gateway, upstream):
    up = await upstream(say.reply("whole"))
    base_url = await gateway(client_key() + provider(up))
    got = await ask(base_url, stream=True)
    assert (got.text, got.finishes, got.done) == ("whole", ["stop"], 1)


async def test_a_stream_answered_to_a_plain_request_becomes_json(gateway, upstream):
    up = await upstream(say.stream("in ", "pieces"))
    base_url = await gateway(client_key() + provider(up))
    got = await ask(base_url, stream=False)
    assert got.json["choices"][0]["message"]["content"] == "in pieces"
    assert got.json["usage"]["total_tokens"] == 12


async def test_the_budget_ends_the_search(gateway, upstream):
    slow = [await upstream(say.error(500).later(0.3)) for _ in range(5)]
    base_url = await gateway(client_key() + "[routing]\nbudget_s = 0.5\n" + "".join(
        provider(up, f"p{i}", keys=f'["sk-p{i}-123456"]') for i, up in enumerate(slow)))
    got = await ask(base_url)
    assert got.status == 502 and got.headers["X-Fallback-Attempts"] == "2"
    assert "time for more is over" in got.error["message"]


async def test_the_hedge_deadline_ends_an_attempt_in_flight(gateway, upstream):
    ups = [await upstream(say.error(500)), await upstream(say.error(500)), await upstream(say.hang())]
    base_url = await gateway(client_key() + '[routing]\nbudget_s = 0.4\nhedge = "deadline"\n' + "".join(
        provider(up, f"p{i}", keys=f'["sk-p{i}-123456"]') for i, up in enumerate(ups)))
    got = await ask(base_url)
    assert got.status == 502 and got.headers["X-Fallback-Attempts"] == "3"
    await ups[2].until(lambda: not ups[2].busy)


@pytest.mark.parametrize("end", [say.Hang(), say.Reset(), say.Close()], ids=["silence", "reset", "close"])
async def test_after_a_finish_reason_a_lost_end_is_no_failure(gateway, upstream, monkeypatch, end):
    monkeypatch.setattr("gateway.pipeline.attempt.GOODBYE_S", 0.1)
    up = await upstream(say.stream("all ", "said").but(say.Wait(0.02), end, after=4))
    base_url = await gateway(client_key() + provider(up))
    got = await ask(base_url, stream=True)
    assert (got.text, got.finishes, got.done, got.error, got.broken) == ("all said", ["stop"], 1, None, "")


async def test_a_refusal_that_says_in_a_second_is_waited_for_where_all_rest(gateway, upstream):
    up = await upstream([say.error(429, "slow down", headers={"Retry-After": "1"}), say.reply("again")])
    base_url = await gateway(client_key() + provider(up))
    assert (await ask(base_url)).status == 429
    got = await ask(base_url)
    assert got.status == 200 and got.json["choices"][0]["message"]["content"] == "again"


LONG_KEY = "sk-up-0123456789abcdef"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("n_words", [0, 40])
async def test_a_key_cut_over_frames_does_not_reach_the_client(gateway, upstream, stream, n_words):
    """Also where frames pass unread by then."""
    words = [f"word{i} " for i in range(n_words)]
    up = await upstream(say.stream(*words, "it is ", LONG_KEY[:4], LONG_KEY[4:9], LONG_KEY[9:], " end", delay_s=0.002))
    got = await ask(await gateway(client_key() + provider(up, keys=f'["{LONG_KEY}"]')), stream=stream)
    text = got.text if stream else got.json["choices"][0]["message"]["content"]
    assert text == "".join(words) + "it is sk-u[redacted] end"


async def test_a_key_cut_over_frames_of_one_read_does_not_reach_the_client(gateway, upstream):
    words = [say.frame(f"word{i} ") for i in range(400)]
    key = [say.frame(sign) for sign in f"key {LONG_KEY} end"]
    up = await upstream(say.script(say.Head(200, say.SSE), say.Send(b"".join(words)), say.Wait(0.02), say.Send(b"".join([*words, *key, *words])),
                                   say.Send(say.frame(finish="stop")), say.Send(say.DONE)))
    got = await ask(await gateway(client_key() + provider(up, keys=f'["{LONG_KEY}"]')), stream=True)
    assert "key sk-up[redacted] end" in got.text and got.text.endswith("word399 ")


async def test_a_key_in_escapes_does_not_pass_as_the_frame_that_it_came_in(gateway, upstream):
    escaped = "".join([f"\\u{ord(sign):04x}" for sign in LONG_KEY])
    frame = say.frame("x", unknown="HERE").replace(b"HERE", escaped.encode())
    up = await upstream(say.script(say.Head(200, say.SSE), say.Send(frame), say.Send(say.frame(finish="stop")), say.Send(say.DONE)))
    got = await ask(await gateway(client_key() + provider(up, keys=f'["{LONG_KEY}"]')), stream=True)
    assert got.text == "x" and LONG_KEY not in str(got.frames)


@pytest.mark.parametrize("status", [204, 205, 301, 304])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_status_that_no_answer_has_moves_on(gateway, upstream, status, stream):
    odd = say.Script((say.Raw(b"HTTP/1.1 %d Odd\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n" % status),))
    a, b, base_url = await two(gateway, upstream, odd)
    got = await ask(base_url, stream=stream)
    assert got.status == 200 and got.headers["X-Routed-Via"] == "b/m"


async def test_a_status_that_no_answer_has_is_named(gateway, upstream):
    up = await upstream(say.Script((say.Raw(b"HTTP/1.1 204 No Content\r\n\r\n"),)))
    got = await ask(await gateway(client_key() + provider(up)))
    assert got.status == 502 and "status 204" in got.error["message"]


async def test_a_redirect_with_a_good_body_is_no_answer(gateway, upstream):
    story = say.stream("from a")
    moved = say.Script((say.Head(301, say.SSE), *story.steps[1:]))
    a, b, base_url = await two(gateway, upstream, moved)
    assert (await ask(base_url, stream=True)).text == "from b"


async def test_a_reader_that_trips_moves_on(gateway, upstream, monkeypatch):
    from gateway.wire.openai_chat.stream import Decoder

    def trip(self, data):
        raise KeyError("unforeseen")
    a, b, base_url = await two(gateway, upstream, say.stream("odd"), good=say.reply("from b"))
    monkeypatch.setattr(Decoder, "feed", trip)
    got = await ask(base_url, stream=True)
    assert got.status == 200 and got.text == "from b" and got.headers["X-Fallback-Trail"] == "a/m key1=bad_reply"


async def test_a_long_key_that_comes_byte_by_byte_is_waited_for_and_then_given_up(gateway, upstream):
    """Thousands of reads that are nothing but the beginning of a key."""
    key = "eyJ" + "".join([chr(97 + i % 26) for i in range(3_000)])
    up = await upstream(say.script(say.Head(200, say.SSE), say.Drip(b"", 0), *[say.Send(bytes([sign])) for sign in say.frame(f"k {key[:2_900]}.")],
                                   say.Send(say.frame(finish="stop")), say.Send(say.DONE)))
    got = await ask(await gateway(client_key() + provider(up, keys=f'["{key}"]')), stream=True)
    assert got.status == 200 and got.text == f"k {key[:2_900]}." and got.finishes == ["stop"]


async def test_large_bodies_are_read_and_written_beside_the_loop(gateway, upstream, monkeypatch):
    from gateway.wire.openai_chat import OPENAI_CHAT
    seen = set()
    for name in ("parse_request", "build_request", "parse_reply"):
        real = getattr(type(OPENAI_CHAT), name)

        def told(self, *given, _real=real, _name=name):
            seen.add((_name, threading.current_thread().name.partition("_")[0]))
            return _real(self, *given)
        monkeypatch.setattr(type(OPENAI_CHAT), name, told)
    up = await upstream(say.reply("y" * 1_200_000))
    base_url = await gateway(client_key() + provider(up))
    got = await ask(base_url, {**ASK, "messages": [{"role": "user", "content": "x" * 1_200_000}]}, stream=False)
    assert got.status == 200
    assert seen == {(name, "gateway-aside") for name in ("parse_request", "build_request", "parse_reply")}
