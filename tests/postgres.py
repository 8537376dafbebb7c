"""A PostgreSQL server of the tests' own: its programs are Debian's, its files are temporary, its socket is the only way in."""
import glob
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from itertools import count

import pytest

UNPRIVILEGED = ("postgres", "nobody")


def program(name):
    """Debian keeps them out of PATH."""
    found = shutil.which(name) or next(iter(sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True)), None)
    return found


def missing():
    """Why there can be none, or ""."""
    if not (program("initdb") and program("postgres")):
        return "initdb and postgres are not installed"
    try:
        import asyncpg  # noqa: F401
    except ImportError:
        return "asyncpg is not installed"
    return ""


def required():
    """Skip where there is no server, unless everything is demanded."""
    if why := missing():
        if os.environ.get("GATEWAY_TEST_REQUIRE") == "all":
            pytest.fail(f"GATEWAY_TEST_REQUIRE=all demands PostgreSQL: {why}", pytrace=False)
        pytest.skip(why)


def somebody():
    """The server refuses root: who runs it instead."""
    if os.getuid():
        return None
    for name in UNPRIVILEGED:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return None


@contextmanager
def server():
    """The address of a database on a server that ends with the block."""
    folder, who = tempfile.mkdtemp(prefix="gateway-pg-"), somebody()
    more = {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []} if who else {}
    if who:
        os.chown(folder, who.pw_uid, who.pw_gid)
    env = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}
    data = os.path.join(folder, "data")
    try:
        subprocess.run([program("initdb"), "-D", data, "-U", "gateway", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
                       check=True, capture_output=True, cwd=folder, env=env, timeout=60, **more)
        running = subprocess.Popen([program("postgres"), "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off",
                                    "-c", "max_connections=50"], cwd=folder, env=env, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, **more)
        try:
            for _ in range(600):
                if os.path.exists(os.path.join(folder, ".s.PGSQL.5432")) and _accepts(folder, env, more):
                    break
                assert running.poll() is None, "the server ended"
                time.sleep(0.05)
            yield f"postgresql://gateway@/postgres?host={folder}"
        finally:
            running.send_signal(2)               # a fast shutdown
            running.wait(30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _accepts(folder, env, more):
    return subprocess.run([program("pg_isready"), "-h", folder, "-q"], env=env, check=False, cwd=folder, **more).returncode == 0


_names = count()


async def schema(address):
    """The address of a schema of one's own on that server."""
    import asyncpg
    name = f"test_{next(_names)}"
    db = await asyncpg.connect(address)
    await db.execute(f"CREATE SCHEMA {name}")
    await db.close()
    return f"{address}&search_path={name}"
