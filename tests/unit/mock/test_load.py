"""The load generator counts an answer only when it was whole."""
import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from gateway.mock import script as s
from gateway.mock.bench_upstream import MARK, Answer, Plan, start
from gateway.mock.load import load, request_bytes, requests, run_bench
from gateway.mock.scenarios import FAILOVER, FAILOVERS, SCENARIOS, Row, Scenario, histogram
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


async def test_stamped_chunks_tell_how_long_they_were_under_way() -> None:
    server, port, _ = await start()
    row = await load(f"http://127.0.0.1:{port}", None, "m", "x", Scenario(stream=True, plan=Plan(chunks=4, delay=2, stamp=1), **SHORT))
    server.close()
    assert row.valid and row.at_once == 2 and 0 < row.transit_p50_ms <= row.transit_p99_ms < row.latency_p99_ms


async def test_below_broken_every_answer_is_503_and_counted() -> None:
    server, port, counts = await start()
    row = await load(f"http://127.0.0.1:{port}/broken/v1", None, "m", "x", Scenario(**SHORT))
    server.close()
    assert (row.errors, counts.refused) == (6, 6) and not row.valid and "503" in row.first_error


def test_a_failover_asks_for_each_name_once() -> None:
    scenarios = [scenario for name, scenario in SCENARIOS.items() if name.startswith("failover-")]
    spans = sorted(scenario.names for scenario in scenarios)
    assert all(scenario.requests <= len(range(*scenario.names)) for scenario in scenarios)
    assert all(before[1] <= after[0] for before, after in pairwise(spans)) and spans[-1][1] <= FAILOVERS
    sent = requests("http://h:1", None, "m", scenarios[0])
    assert len(set(sent)) == len(range(*scenarios[0].names)) and FAILOVER.format(scenarios[0].names[0]).encode() in sent[0]


def test_headers_of_ones_own_are_sent() -> None:
    head = request_bytes("http://h:1/v1", None, "m", SCENARIOS["whole-1"], ["X-A: b"]).split(b"\r\n\r\n")[0]
    assert b"\r\nX-A: b\r\n" in head + b"\r\n"


def test_a_histogram_has_every_answer_once_and_no_gaps() -> None:
    values = sorted([0.0010, 0.0011, 0.0012, 0.008, 0.5])
    steps = histogram(values)
    assert sum(n for _, n in steps) == 5 and steps[0][0] >= 1.0 and steps[-1][0] >= 500 and not histogram([])
    assert all(1.17 < after[0] / before[0] < 1.21 for before, after in pairwise(steps))


async def test_progress_is_told_while_it_runs() -> None:
    server, port, _ = await start()
    told: list[tuple[float, int, int]] = []
    await load(f"http://127.0.0.1:{port}", None, "m", "x", Scenario(about="", seconds=0.3, warmup_s=0.0),
               progress=lambda *seen: told.append(seen))
    server.close()
    shares = [share for share, _, _ in told]
    assert len(told) >= 2 and shares == sorted(shares) and shares[-1] <= 1 and told[-1][1] > 0 == told[-1][2]
