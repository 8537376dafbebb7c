"""``gateway serve``: run the gateway until it is told to stop."""
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.cli import loop
from gateway.cli.source import compiled, config_option, refuse
from gateway.config.load import ConfigError, load
from gateway.config.snapshot import Snapshot

if TYPE_CHECKING:
    from gateway.server.post import Post


def n_workers(context: click.Context, option: click.Parameter, value: str | None) -> int | str | None:
    """A number, or auto."""
    if value is None or value == "auto":
        return value
    if value.isdecimal() and 1 <= int(value) <= 256:
        return int(value)
    raise click.BadParameter('must be a number from 1 to 256, or "auto"', context, option)


@click.command(epilog="""\b
Examples:
  gateway serve                                  your keys, or a demo without any; http://127.0.0.1:8788
  gateway serve --config gateway.toml --port 9000
  GROQ_API_KEY=… gateway serve                   Groq's models at once
  kill -HUP PID                                  reload the configuration; a bad one is refused
  kill -USR2 PID                                 replace the program while it serves: refuses no connection""")
@config_option
@click.option("--host", metavar="HOST", help="Address to accept on; one that is not loopback needs a client key.")
@click.option("--port", "-p", type=click.IntRange(0, 65535), metavar="PORT", help="Port; 0 takes a free one.")
@click.option("--workers", callback=n_workers, metavar="N", help='Processes that share the port; "auto": one for each processor.')
def command(config: Path | None, host: str | None, port: int | None, workers: int | str | None) -> None:
    """Run the gateway.

    Prints one line with the URL when it accepts. SIGTERM drains: running answers are finished first.
    A bad configuration is told as `path: message` lines with exit status 2.
    """
    from gateway.server import post as places

    post = places.mine()

    def read() -> Snapshot:
        found = load(config, os.environ, host=host, port=port, workers=workers)
        return found if post is None else places.share_of(found, post)

    snapshot = compiled(read)
    log_to_stderr(snapshot.log.level)
    try:
        status = run(snapshot, read, post)
    except ConfigError as error:
        refuse(error.problems)
    except OSError as error:
        where = f"{snapshot.server.host}:{snapshot.server.port}"
        refuse([("server.port", f"cannot accept on {where}: {error.strerror or error}; choose another with --port")])
    if status:
        raise SystemExit(status)


def run(snapshot: Snapshot, read: Callable[[], Snapshot], post: "Post | None") -> int:
    """Serve to the end, alone, as one of several, or as the one who looks after them. Raises OSError."""
    from gateway.server import workers

    if post is None and (n := workers.count(snapshot.server)) > 1:
        return loop.run(workers.supervise(snapshot, n, [sys.executable, "-m", "gateway", *sys.argv[1:]], announce))
    from gateway.server.run import serve

    loop.run(serve(snapshot, on_ready=announce, reload=read, post=post))
    return 0


def announce(url: str) -> None:
    try:
        print(f"gateway is ready at {url}", flush=True)
    except OSError:
        logging.getLogger("gateway.server").warning("ready at %s; nobody reads standard output", url)


def log_to_stderr(level: str) -> None:
    from gateway.observe.lines import LineHandler, LineWriter

    logging.basicConfig(handlers=[LineHandler(LineWriter())], level=logging.ERROR if level == "error" else logging.WARNING)
    logging.getLogger("gateway").setLevel(level.upper())     # ours alone: libraries tell what they carry (values of SQL, addresses)
