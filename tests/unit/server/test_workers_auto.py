"""`workers = "auto"`: as many as there are processors that this process may use."""
import os

import pytest

from gateway.config.schema import Server
from gateway.server import workers


@pytest.mark.parametrize(("said", "wanted"), [("150000 100000\n", 1.5), ("max 100000\n", 1e9), ("", 1e9), ("1 0\n", 1e9)])
def test_a_container_s_share_of_processors_is_read(tmp_path, said, wanted):
    (tmp_path / "cpu.max").write_text(said)
    assert workers.quota(tmp_path / "cpu.max") == wanted
    assert workers.quota(tmp_path / "nothing") == 1e9


@pytest.mark.parametrize(("said", "n"), [("150000 100000\n", 2), ("10000 100000\n", 1), ("max 100000\n", 8), ("6400000 100000\n", 8)])
def test_auto_is_the_smaller_of_affinity_and_share(tmp_path, monkeypatch, said, n):
    (tmp_path / "cpu.max").write_text(said)
    monkeypatch.setattr(workers, "_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    assert workers.count(Server(workers="auto")) == n
    assert workers.count(Server(workers=3)) == 3
