"""`gateway providers test`: keys are tried, told apart, and never shown."""
import json
import subprocess
import sys

from gateway.mock.script import body_of
from tests.conftest import provider


async def run(*words):
    import asyncio
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "gateway", "providers", "test", *words,
                                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


async def test_good_and_bad_keys_are_told_apart(upstream, tmp_path):
    def answer(asked):
        good = asked.headers["authorization"] == "Bearer sk-good-1"
        return body_of(b'{"data":[{"id":"a"}]}' if good else b'{"error":{"message":"no"}}', 200 if good else 401,
                       {"Content-Type": "application/json"})
    up = await upstream(answer)
    file = tmp_path / "gateway.toml"
    file.write_text('[store]\nurl = "memory:"\n' + provider(up, keys='["sk-good-1", "sk-bad-22"]') + provider(up, "fine", keys='["sk-good-1"]'))
    status, out, _ = await run("--config", str(file), "--json")
    assert status == 1 and [row["state"] for row in json.loads(out)] == ["good", "bad", "good"] and "sk-" not in out
    status, out, _ = await run("fine", "--config", str(file))
    assert status == 0 and "good" in out
    status, _, err = await run("nobody", "--config", str(file))
    assert status == 1 and "there are: up, fine" in err
