"""``gateway serve``: run the gateway until it is told to stop."""
import logging
import os
from pathlib import Path

import click

from gateway.cli import loop
from gateway.cli.source import compiled, config_option, refuse
from gateway.config.load import ConfigError, load
from gateway.config.snapshot import Snapshot


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
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Processes; this version has one.")
def command(config: Path | None, host: str | None, port: int | None, workers: int | None) -> None:
    """Run the gateway.

    Prints one line with the URL when it accepts. SIGTERM drains: running answers are finished first.
    A bad configuration is told as `path: message` lines with exit status 2.
    """
    from gateway.server.run import serve

    if workers is not None and workers > 1:
        refuse([("server.workers", "not available in this version; leave it at 1")])

    def read() -> Snapshot:
        return load(config, os.environ, host=host, port=port)

    snapshot = compiled(read)
    log_to_stderr(snapshot.log.level)
    try:
        loop.run(serve(snapshot, on_ready=announce, reload=read))
    except ConfigError as error:
        refuse(error.problems)
    except OSError as error:
        where = f"{snapshot.server.host}:{snapshot.server.port}"
        refuse([("server.port", f"cannot accept on {where}: {error.strerror or error}; choose another with --port")])


def announce(url: str) -> None:
    try:
        print(f"gateway is ready at {url}", flush=True)
    except OSError:
        logging.getLogger("gateway.server").warning("ready at %s; nobody reads standard output", url)


def log_to_stderr(level: str) -> None:
    from gateway.observe.lines import LineHandler, LineWriter

    logging.basicConfig(handlers=[LineHandler(LineWriter())], level=level.upper(),
                        format="%(asctime)s %(levelname)s %(name)s: %(message)s")
