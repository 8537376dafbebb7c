"""A real Valkey or Redis for a test: a server of our own on a UNIX socket, which can be killed and come back empty or not."""
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

PROGRAMS = ("valkey-server", "redis-server")


def program() -> str:
    """Its path; skips the test where there is none, unless everything is demanded."""
    found = next((path for name in PROGRAMS if (path := shutil.which(name) or shutil.which(f"/usr/bin/{name}"))), None)
    if found is None:
        if os.environ.get("GATEWAY_TEST_REQUIRE") == "all":
            pytest.fail("GATEWAY_TEST_REQUIRE=all demands valkey-server or redis-server", pytrace=False)
        pytest.skip("neither valkey-server nor redis-server is installed")
    return found


class Server:
    """``url`` is what a configuration says of it."""

    def __init__(self, folder: Path) -> None:
        self._program = program()
        self._folder = folder
        self._socket = folder / "valkey.sock"
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"unix://{self._socket}"

    def start(self) -> None:
        self._process = subprocess.Popen(
            [self._program, "--port", "0", "--unixsocket", str(self._socket), "--dir", str(self._folder), "--save", "",
             "--appendonly", "no", "--daemonize", "no"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(500):
            if self._answers():
                return
            time.sleep(0.01)
        raise RuntimeError("the server does not start")

    def _answers(self) -> bool:
        import valkey
        try:
            return bool(valkey.Valkey.from_url(self.url).ping())
        except (valkey.ValkeyError, OSError):
            return False

    def kill(self) -> None:
        """As with the power cord: everything in it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            self._socket.unlink(missing_ok=True)

    def keys(self) -> dict[str, int]:
        """Every key with the seconds that it has left; -1 = for ever."""
        import valkey
        client = valkey.Valkey.from_url(self.url)
        return {key.decode(): client.ttl(key) for key in client.keys("*")}

    def everything(self) -> bytes:
        """All that a look into it would show."""
        import valkey
        client = valkey.Valkey.from_url(self.url)
        read = {b"string": client.get, b"hash": client.hgetall, b"stream": client.xrange,
                b"zset": lambda key: client.zrange(key, 0, -1, withscores=True)}
        return b"\n".join(key + repr(read[client.type(key)](key)).encode() for key in client.keys("*"))
