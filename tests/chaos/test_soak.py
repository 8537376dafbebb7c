"""Some seconds of mixed load with faults leave nothing behind; half an hour of the same: scripts/accept soak."""
import pytest

from benchmarks.soak.__main__ import Report, picture, soak
from benchmarks.soak.house import Sample

FILLING_KB = 40_960                              # in the first seconds caches and pools fill; test_forgotten.py counts what a request leaves
KEPT = {"tasks": 2, "sockets": 20, "fds": 20}     # between two looks alone; a socket left by each tenth client would be more
LEAST = {"answered": 100, "left": 10, "mistakes": 10, "looks": 3}


@pytest.mark.timeout(90)
async def test_mixed_load_with_faults_leaves_nothing_behind():
    report = await soak(12, clients=12, round_s=3.5, pause_s=2.5)
    assert report.problems(FILLING_KB, KEPT) == []
    assert {name: report.seen.get(name, 0) >= n for name, n in LEAST.items()} == dict.fromkeys(LEAST, True), report.seen
    assert any(name.startswith("refused") or name == "told in stream" for name in report.seen), "faults were seen"
    assert report.resting[-1].in_flight == 0


def grown(**more):
    rests = [Sample(at_s=20.0 * n, rss_kb=90_000 + n * more.get("rss_kb", 0), fds=30 + n * more.get("fds", 0),
                    sockets=12 + n * more.get("sockets", 0), threads=10, tasks=12 + n * more.get("tasks", 0), in_flight=0)
             for n in range(30)]
    return Report(samples=rests, resting=rests, seen={"answered": 9}, wrong=[], complaints=[])


def test_what_stays_as_it_was_is_no_problem(tmp_path):
    assert grown().problems() == []
    picture(grown(), str(tmp_path / "it.png"))
    assert (tmp_path / "it.png").read_bytes()[1:4] == b"PNG"


@pytest.mark.parametrize(("name", "each"), [("rss_kb", 250), ("fds", 1), ("sockets", 1), ("tasks", 1)])
def test_what_grows_is_told(name, each):
    assert "grew" in grown(**{name: each}).problems()[0]
