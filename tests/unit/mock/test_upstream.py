"""The scripted upstream does what its script says and tells what it saw."""
import asyncio

import aiohttp
import pytest

from gateway.mock import script as s
from gateway.mock.upstream import Asked, Upstream


async def post(up: Upstream, session: aiohttp.ClientSession, body: str = "{}") -> tuple[int, bytes]:
    async with session.post(up.base_url + "/chat/completions", data=body, headers={"X-A": "b"}) as reply:
        return reply.status, await reply.read()


@pytest.fixture
async def session():
    async with aiohttp.ClientSession() as made:
        yield made


async def test_one_script_answers_every_request_and_requests_are_remembered(session) -> None:
    async with Upstream(s.stream("Hel", "lo")) as up:
        for _ in range(2):
            status, body = await post(up, session, '{"a":1}')
            assert status == 200 and body.startswith(s.frame(role="assistant", content="")) and body.endswith(s.DONE)
        assert up.connections == 1 and up.busy == 0
        asked = up.requests[0]
        assert (asked.method, asked.path, asked.json(), asked.headers["x-a"]) == ("POST", "/v1/chat/completions", {"a": 1}, "b")
    assert up.open_connections == 0


async def test_scripts_in_turn_and_the_last_one_stays(session) -> None:
    async with Upstream([s.error(500), s.error(429, headers={"Retry-After": "3"}), s.reply()]) as up:
        assert [(await post(up, session))[0] for _ in range(4)] == [500, 429, 200, 200]


async def test_a_function_answers_by_what_was_asked(session) -> None:
    def answer(asked: Asked) -> s.Script:
        return s.reply(asked.json()["say"])
    async with Upstream(answer) as up:
        assert b"moo" in (await post(up, session, '{"say":"moo"}'))[1]


@pytest.mark.parametrize(("story", "error"), [
    (s.reset_before_headers(), aiohttp.ClientOSError), (s.close_before_headers(), aiohttp.ServerDisconnectedError),
    (s.reset_after_headers(), aiohttp.ClientPayloadError), (s.half_frame("a"), aiohttp.ClientPayloadError),
    (s.cut_length(), aiohttp.ClientPayloadError), (s.garbage(), aiohttp.ClientResponseError)])
async def test_what_goes_wrong_goes_wrong_on_the_wire(session, story: s.Script, error: type[Exception]) -> None:
    async with Upstream(story) as up:
        with pytest.raises(error):
            await post(up, session)


async def test_a_client_that_leaves_ends_the_script_and_nothing_stays_behind(session) -> None:
    async with Upstream(s.stall("a")) as up:
        async with session.post(up.base_url) as reply:
            await reply.content.readany()
            assert up.busy == 1
            reply.close()
        await up.until(lambda: up.busy == up.open_connections == 0)
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


def test_a_story_can_be_told_otherwise_from_any_point() -> None:
    steps = s.stream("a", "b").but(s.Reset(), after=2).later(1.5).steps
    assert [type(step).__name__ for step in steps] == ["Wait", "Head", "Send", "Send", "Reset"]
    assert s.tool_stream("f", ["{", "}"]).steps[-1] == s.Send(s.DONE)
