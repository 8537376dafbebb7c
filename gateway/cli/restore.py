"""``gateway restore``: a copy of the records takes the place of those that are there."""
from pathlib import Path

import click

from gateway.cli.copies import store_file, told
from gateway.cli.source import config_option


@click.command(epilog="""\b
Examples:
  gateway restore /var/backups/gateway-2027-01-31.db
  gateway restore copy.db --yes""")
@config_option
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def command(config: Path | None, file: Path, yes: bool) -> None:
    """Put a copy that `gateway backup` made in the place of the store.

    Refused while a gateway uses the store, and where the copy is damaged or of a newer version. Tables of an older version are
    brought up to date by the next start, or by `gateway migrate`.
    """
    from gateway.store import copying

    target = store_file(config, "use pg_restore")
    with told("looking") as _:
        copying.version(file)
        if target.exists():
            copying.alone(target)
    if target.exists() and not yes:
        click.confirm(f"Everything in {target} is replaced by {file}. Go on?", abort=True)
    with told("restoring") as progress:
        copying.restore(file, target, progress)
    click.echo(f"{target}: restored from {file}")
