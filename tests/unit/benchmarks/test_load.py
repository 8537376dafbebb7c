"""The runner that compares gateways: who is measured, what its tables say, and that a broken bound is told."""
import sys
from typing import Any

import pytest

if sys.platform == "win32":
    pytest.skip("the runner pins processes to cores", allow_module_level=True)

from benchmarks.load.bounds import broken
from benchmarks.load.flame import counted, difference, table
from benchmarks.load.peers import BUILT_IN, OTHERS, filled, known, our_config
from benchmarks.load.processes import processes_for
from benchmarks.load.report import bad, show
from benchmarks.load.run import stages
from gateway.config.load import load
from gateway.mock.scenarios import FAILOVER, SCENARIOS


def row(**more: Any) -> dict[str, Any]:
    return {"errors": 0, "truncated": 0, "unfinished": 0, "ok": 10, "answered": 10, "first_error": "", "per_s": 10.0, "refused": 0,
            "cpu_us_per_answer": 100.0, "latency_p50_ms": 1.0, "rss_before_mb": 50.0, "rss_peak_mb": 60.0, **more}


def data(ours: dict[str, dict[str, Any]], theirs: dict[str, dict[str, Any]], **process: float) -> dict[str, Any]:
    return {"scenarios": list(ours), "peers": {"aiohttp": [{"scenarios": theirs}], "gateway": [{"scenarios": ours, **process}]}}


def test_a_bound_that_does_not_hold_is_told() -> None:
    fine = data({"whole-32": row(cpu_us_per_answer=59.0, per_s=16.0)}, {"whole-32": row()}, start_s=0.5, rss_idle_mb=60.0)
    assert not broken(fine)
    slow = data({"whole-32": row(cpu_us_per_answer=61.0, per_s=14.0)}, {"whole-32": row()}, start_s=0.7, rss_idle_mb=66.0)
    assert [line.split(":")[0] for line in broken(slow)] == [
        "whole-32, CPU of an answer, × aiohttp", "whole-32, answers a second, × aiohttp", "idle MB", "cold start, s"]


@pytest.mark.parametrize("fault", [{"errors": 1}, {"truncated": 1}, {"unfinished": 1}, {"ok": 0}])
def test_a_row_with_a_fault_is_no_result(fault: dict[str, int]) -> None:
    assert broken(data({"whole-1": row(**fault)}, {})) == ["gateway: whole-1 is not valid"]


def test_a_failover_that_did_not_fail_over_is_no_result() -> None:
    assert bad([{"scenarios": {"failover-1": row(refused=9)}}], "failover-1")
    assert not bad([{"scenarios": {"failover-1": row(refused=10)}}], "failover-1")


def test_tables_hold_every_peer_and_ratios_of_the_same_run(capsys: pytest.CaptureFixture[str]) -> None:
    show(data({"whole-32": row(cpu_us_per_answer=50.0)}, {"whole-32": row()}, start_s=0.5, rss_fresh_mb=55.0, rss_idle_mb=60.0))
    said = capsys.readouterr().out
    assert "| gateway | 10.0 | 50.0 | 0.50 |" in said and "| aiohttp | 10.0 | 100 | 1.00 |" in said
    assert "| gateway | 0.50 | 55.0 | 60.0 |" in said


def test_others_are_described_whole() -> None:
    values = {"port": 1, "upstream": "http://u:2/v1", "address": "u:2", "folder": "/f", "key": "k", "home": "/h"}
    assert {path.stem for path in OTHERS.glob("*.toml")} >= {"litellm", "portkey", "nginx"}
    for name, peer in known([]).items():
        if name in BUILT_IN:
            continue
        assert peer.install and peer.needs and "1" in filled(peer.command + "".join(peer.files.values()), values)
        for text in (peer.command, *peer.headers, *peer.files.values()):
            assert not [hole for hole in values if "{" + hole + "}" in filled(text, values)]


def test_a_peer_of_ones_own_may_be_another_version_of_this_project() -> None:
    peers = known(["mine=python p.py --port {port}", "before=python -m gateway serve --config {config}"])
    assert not peers["mine"].ours and peers["before"].ours and peers["before"].ready == "/livez"
    assert stages(peers["mine"], list(SCENARIOS)) == [[n for n in SCENARIOS if n not in ("failover-1", "failover-32", "slow-10000")]]
    assert stages(peers["before"], ["whole-1", "slow-10000", "failover-1"]) == [["whole-1"], ["failover-1"], ["slow-10000"]]


@pytest.mark.parametrize(("streams", "files", "n"), [(1_000, 20_000, 1), (10_000, 20_000, 2), (10_000, 32_768, 1), (10_000, 4_096, 6)])
def test_who_may_open_few_files_needs_more_processes(streams: int, files: int, n: int) -> None:
    assert processes_for(streams, files) == n


@pytest.mark.parametrize("failover", [False, True])
def test_the_configuration_of_a_run_is_one_that_the_gateway_takes(failover: bool, tmp_path: Any) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text(our_config("127.0.0.1:9", 8123, failover, 2), encoding="utf-8")
    snapshot = load(path, {})
    assert snapshot.server.workers == 2 and (FAILOVER.format(0) in path.read_text(encoding="utf-8")) is failover


FOLDED = "a (/x/site-packages/p/q.py:1);b (/y/gateway/pipeline/serve.py:7);c (gateway/core/ids.py:3) 3\na (/x/site-packages/p/q.py:9) 1\n"


def test_a_profile_is_told_by_function() -> None:
    own, within, total = counted(FOLDED)
    assert total == 4 and own["c (gateway/core/ids.py)"] == 3 and within["a (p/q.py)"] == 4
    assert within["b (gateway/pipeline/serve.py)"] == 3 and "| `c (gateway/core/ids.py)` | 75.0% | 75.0% |" in table(FOLDED)


def test_two_profiles_are_compared_by_share() -> None:
    after = FOLDED.replace(" 3\n", " 1\n")
    assert "| `c (gateway/core/ids.py)` | 75.0% | 50.0% |" in difference(FOLDED, after)
