"""``gateway backup``: a copy of the records, also while a gateway writes them."""
from pathlib import Path

import click

from gateway.cli.copies import megabytes, store_file, told
from gateway.cli.source import config_option, json_option


@click.command(epilog="""\b
Examples:
  gateway backup /var/backups/gateway-$(date +%F).db
  gateway backup copy.db --force""")
@config_option
@json_option
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
def command(config: Path | None, as_json: bool, file: Path, force: bool) -> None:
    """Copy the store into FILE: records, client keys, combos, stored responses, what routing learned.

    The copy stands for one moment, is checked, and only you may read it. Rotated OAuth tokens are not in it: they lie in
    tokens.json beside the store.
    """
    from gateway.cli import show
    from gateway.store import copying

    source = store_file(config, "use pg_dump")
    if file.exists() and not force:
        raise click.ClickException(f"{file} is there already; --force replaces it")
    with told("copying") as progress:
        n_bytes = copying.backup(source, file, progress)
    if as_json:
        show.as_json({"file": str(file), "bytes": n_bytes, "version": copying.version(file)})
    else:
        click.echo(f"{file}: {megabytes(n_bytes)}, checked")
