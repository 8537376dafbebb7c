"""The load generator counts an answer only when it was whole."""
import json
from typing import Any

import msgspec
import pytest

from gateway.mock import script as s
from gateway.mock.bench_upstream import MARK, Answer, Plan, start
from gateway.mock.load import SCENARIOS, Row, Scenario, load, request_bytes, run_bench
from gateway.mock.upstream import Upstream

SHORT: dict[str, Any] = {"about": "", "clients": 2, "requests": 6, "warmup_s": 0.0, "grace_s": 2.0}


@pytest.mark.parametrize("plan", [Plan(chunks=3), Plan(chunks=7, group=3), Plan(chunks=2, delay=5), Plan(chunks=3, text=500)])
@pytest.mark.parametrize("stream", [True, False])
async def test_whole_answers_count(plan: Plan, stream: bool) -> None:
    server, port, counts = await start()
    row = await load(f"http://127.0.0.1:{port}", "k", "m", "x", Scenario(stream=stream, plan=plan, **SHORT))
    server.close()
    assert row.valid and row.ok == row.answered == 6 and counts.requests == 6 and counts.aborted == 0
    assert row.chunks == (6 * plan.chunks if stream else 6)
    assert row.latency_p99_ms >= row.latency_p50_ms > 0


def marked(n: int, *more: s.Step) -> s.Script:
    return s.script(s.Head(200, s.SSE), *[s.Send(s.frame(MARK + "x"))] * n, *more)


@pytest.mark.parametrize(("story", "field"), [
    (marked(3, s.Send(s.DONE)), "ok"),
    (marked(2, s.Send(s.DONE)), "truncated"),
    (marked(4, s.Send(s.DONE)), "truncated"),
    (marked(3), "truncated"),
    (marked(3, s.Close()), "truncated"),
    (marked(3, s.Send(b"data: [DO"), s.Send(b"NE]\n\n")), "ok"),
    (s.error(503), "errors"),
    (s.reset_before_headers(), "errors"),
    (marked(1, s.Hang()), "unfinished"),
])
async def test_and_nothing_else_does(story: s.Script, field: str) -> None:
    scenario = Scenario(about="", stream=True, plan=Plan(chunks=3), requests=1, warmup_s=0.0, grace_s=0.2)
    async with Upstream(story) as up:
        row = await load(up.base_url, None, "m", "x", scenario)
    assert {name: getattr(row, name) for name in ("ok", "errors", "truncated", "unfinished")} == {
        "ok": 0, "errors": 0, "truncated": 0, "unfinished": 0, field: 1}
    assert row.valid is (field == "ok") and bool(row.first_error) is (field in ("errors", "truncated"))


def test_the_request_carries_its_plan_and_its_size() -> None:
    scenario = SCENARIOS["large-prompt"]
    head, body = request_bytes("http://h:1/v1", "key", "a/b", scenario).split(b"\r\n\r\n", 1)
    assert head.startswith(b"POST /v1/chat/completions HTTP/1.1") and b"Authorization: Bearer key" in head
    sent = json.loads(body)
    assert sent["model"] == "a/b" and scenario.plan.mark() in sent["messages"][1]["content"] and 99_000 < len(body) < 101_000


def test_no_mark_is_in_what_surrounds_the_text() -> None:
    answer = Answer(Plan(chunks=5, group=2))
    assert (answer.opening + answer.ending).count(MARK.encode()) == 0
    assert b"".join(answer.writes).count(MARK.encode()) == 5 and answer.whole.count(MARK.encode()) == 1


def test_without_a_url_the_upstream_itself_is_measured() -> None:
    rows = run_bench(None, None, "bench-model", ["whole-1"], 0.1)
    assert [row.scenario for row in rows] == ["whole-1"] and rows[0].valid
    assert msgspec.convert(msgspec.structs.asdict(rows[0]), Row) == rows[0]
