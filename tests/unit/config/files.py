"""Configurations as text, and what is said about them."""
import pytest

from gateway.config.load import ConfigError, loads
from gateway.config.snapshot import Snapshot

PROVIDER = '[[providers]]\nid = "a"\nbase_url = "https://a.example/v1"\napi_keys = ["sk-a-123456"]\nmodels = ["m"]\n'


def good(text: str = "", env: dict[str, str] | None = None) -> Snapshot:
    return loads(text, env)


def refused(text: str, env: dict[str, str] | None = None) -> dict[str, str]:
    """path -> message of every problem."""
    with pytest.raises(ConfigError) as caught:
        loads(text, env)
    problems = caught.value.problems
    assert len({path for path, _ in problems}) == len(problems), "a path is told once"
    return dict(problems)


def upstream(extra: str = "", *, without: str = "") -> str:
    """One provider; ``without``: lines that begin so are left out."""
    lines = [line for line in PROVIDER.split("\n") if not (without and line.startswith(tuple(without.split())))]
    return "\n".join(lines) + extra
