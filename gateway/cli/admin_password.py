"""``gateway admin-password``: how does the configuration keep the operator's password? As a hash, which this makes."""
import sys

import click

from gateway.policy import passwords

MIN_CHARS = 8


@click.command(epilog="""\b
Examples:
  gateway admin-password                     asks twice, prints the line for [admin]
  gateway admin-password --stdin < file      takes the first line; prints the hash alone""")
@click.option("--stdin", is_flag=True, help="Read the password from standard input and print nothing but the hash.")
def command(stdin: bool) -> None:
    """Make the hash of a password for admin.password_hash."""
    if stdin:
        password = sys.stdin.readline().rstrip("\r\n")
    else:
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    if not MIN_CHARS <= len(password) <= passwords.MAX_CHARS:
        raise click.ClickException(f"a password has {MIN_CHARS} to {passwords.MAX_CHARS} characters")
    made = passwords.hashed(password)
    click.echo(made if stdin else f'[admin]\npassword_hash = "{made}"')
