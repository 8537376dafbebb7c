"""``gateway keys``: who may ask, for what and how much? The client keys of the store; those of the configuration are listed too."""
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
import msgspec

from gateway.cli.source import config_option, json_option, stored
from gateway.core.clock import moment
from gateway.core.keys import GroupRow, Rules
from gateway.policy.keybook import KeyBook, Made

if TYPE_CHECKING:
    from gateway.server.compose import Offline

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DURATION: Final = re.compile(r"(\d{1,6})([smhdw])")


def seconds(text: str) -> float:
    """``90s``, ``15m``, ``24h``, ``30d``, ``2w``. Raises ValueError."""
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None:
        raise ValueError(text)
    return float(int(found[1]) * _UNITS[found[2]])


def expiry(context: click.Context, option: click.Parameter, value: str | None) -> float | None:
    """A date, a time, a span from now, or ``never``: epoch seconds."""
    if value is None:
        return None
    text = value.strip().lower()
    try:
        return 0.0 if text == "never" else time.time() + seconds(text) if _DURATION.fullmatch(text) else moment(value)
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{value!r} is no date; write 2027-01-31, 2027-01-31T18:00:00Z, 30d or never") from None


def span(context: click.Context, option: click.Parameter, value: str) -> float:
    """A duration in seconds."""
    try:
        return 0.0 if value.strip() == "0" else seconds(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is no duration; write 90s, 15m, 24h or 7d") from None


def rules_options(command: F) -> F:
    """What a key may do; what is left out stays as it is."""
    count = click.IntRange(0)
    usd = click.FloatRange(0)
    options = (
        click.option("--models", "-m", multiple=True, metavar="PATTERN", help='Models that it may use: "gpt-*"; may be repeated.'),
        click.option("--rpm", type=count, metavar="N", help="Requests per minute; 0 = no limit."),
        click.option("--tpm", type=count, metavar="N", help="Tokens per minute; 0 = no limit."),
        click.option("--rpd", type=count, metavar="N", help="Requests per day; 0 = no limit."),
        click.option("--concurrency", type=count, metavar="N", help="Requests at a time; 0 = no limit."),
        click.option("--budget-day", "budget_usd_day", type=usd, metavar="USD", help="US dollars per UTC day; 0 = no limit."),
        click.option("--budget-month", "budget_usd_month", type=usd, metavar="USD", help="US dollars per UTC month; 0 = no limit."),
        click.option("--allow-unknown-price/--refuse-unknown-price", default=None,
                     help="In spite of a budget, models may be used whose price nobody knows."),
        click.option("--group", metavar="NAME", help='The group whose budget it shares; "" = none.'),
        click.option("--mcp-scope", "mcp_scopes", multiple=True, metavar="SCOPE",
                     help='What it may do over MCP: "read:*", "execute:completions"; may be repeated; none = nothing.'),
        click.option("--expires", "expires_at", callback=expiry, metavar="DATE", help="When it ends: 2027-01-31, 30d or never."),
        click.option("--note", metavar="TEXT", help="For people."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The rules that were typed."""
    found = {name: value for name, value in options.items() if value is not None and value != ()}
    return {name: tuple(value) if isinstance(value, (list, tuple)) else value for name, value in found.items()}


def asked(config: Path | None, work: Callable[[KeyBook], Awaitable[T]]) -> T:
    """Do something with the client keys of the store."""
    return stored(config, lambda store: work(store.book))


@click.group(invoke_without_command=True, epilog="""\b
Examples:
  gateway keys                                                list them
  gateway keys create ci --models 'gpt-*' --rpm 60 --budget-month 20 --expires 90d
  KEY=$(gateway keys create laptop)                           the key is told once, alone on standard output
  gateway keys update ci --budget-month 50
  gateway keys rotate ci --grace 24h                          the old secret is good for a day
  gateway keys revoke ci
  gateway keys group team --budget-month 200 && gateway keys update ci --group team
  gateway keys reencrypt                                      after a new master key was put before the old one""")
@config_option
@json_option
@click.pass_context
def command(context: click.Context, config: Path | None, as_json: bool) -> None:
    """Make, list and change client keys. A running gateway takes a change over within a second or two."""
    if context.invoked_subcommand is None:
        show_list(config, as_json)


@command.command("list")
@config_option
@json_option
def list_(config: Path | None, as_json: bool) -> None:
    """List the client keys with their limits and what they have spent; no secrets."""
    show_list(config, as_json)


def show_list(config: Path | None, as_json: bool) -> None:
    from gateway.cli import show

    rows = asked(config, lambda book: book.listed())
    if as_json:
        show.as_json(rows)
        return
    if not rows:
        click.echo("no client keys; make one: gateway keys create NAME", err=True)
        return
    show.table(("name", "key", "state", "models", "limits", "today", "this month", "group", "expires"),
               [(row["name"], row["hint"] or row["source"], row["state"], ", ".join(row["models"]), limits(row),
                 money(row["spent_usd_day"], row["budget_usd_day"]), money(row["spent_usd_month"], row["budget_usd_month"]),
                 row["group"], row["expires"][:10]) for row in rows], right=("today", "this month"))


def limits(row: dict[str, Any]) -> str:
    told = (("rpm", "/min"), ("rpd", "/day"), ("tpm", " tok/min"), ("concurrency", " at once"))
    return ", ".join(f"{row[name]:,}{unit}" for name, unit in told if row[name])


def money(spent: float, budget: float) -> str:
    """Small sums in more digits: $0.00 of $0.00 would tell nothing."""
    def told(usd: float) -> str:
        return f"${usd:,.4f}" if 0 < usd < 0.1 else f"${usd:,.2f}"

    return f"{told(spent)} of {told(budget)}" if budget else told(spent) if spent else ""


@command.command("create")
@click.argument("name")
@rules_options
@config_option
@json_option
def create(name: str, config: Path | None, as_json: bool, note: str | None, **options: Any) -> None:
    """Make a key. Its secret is told now and never again."""
    rules = Rules(**given(options))
    told(config, as_json, lambda book: book.create(name, rules, note or ""))


@command.command("rotate")
@click.argument("key")
@click.option("--grace", callback=span, default="0", metavar="TIME",
              help="How long the old secret is good as well: 15m, 24h, 7d; default: not at all.")
@config_option
@json_option
def rotate(key: str, grace: float, config: Path | None, as_json: bool) -> None:
    """Give a key a new secret; everything else stays."""
    told(config, as_json, lambda book: book.rotate(key, grace))


def told(config: Path | None, as_json: bool, work: Callable[[KeyBook], Awaitable[Made]]) -> None:
    """The one time that a secret is shown."""
    from gateway.cli import show

    async def made(book: KeyBook) -> tuple[dict[str, Any], str]:
        done = await work(book)
        return book.view(done.row), done.secret

    row, secret = asked(config, made)
    if as_json:
        show.as_json({**row, "key": secret})
        return
    click.echo(f"{row['name']} ({row['id']}); keep this key, it cannot be shown again:", err=True)
    click.echo(secret)


@command.command("update")
@click.argument("key")
@rules_options
@config_option
@json_option
def update(key: str, config: Path | None, as_json: bool, note: str | None, **options: Any) -> None:
    """Change what a key may do; what is left out stays as it is."""
    changes = given(options)
    if not changes and note is None:
        raise click.UsageError("Nothing to change; see gateway keys update --help.")
    changed(config, as_json, lambda book: book.update(key, note, **changes), "changed")


@command.command("revoke")
@click.argument("key")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@config_option
@json_option
def revoke(key: str, yes: bool, config: Path | None, as_json: bool) -> None:
    """Refuse a key from now on, for good."""
    if not yes:
        click.confirm(f"Revoke {key}? Whoever uses it is refused from now on.", abort=True, err=True)
    changed(config, as_json, lambda book: book.revoke(key), "revoked")


def changed(config: Path | None, as_json: bool, work: Callable[[KeyBook], Awaitable[Any]], verb: str) -> None:
    from gateway.cli import show

    async def done(book: KeyBook) -> dict[str, Any]:
        return book.view(await work(book))

    row = asked(config, done)
    if as_json:
        show.as_json(row)
    else:
        click.echo(f"{row['name']} ({row['id']}): {verb}")


@command.command("groups")
@config_option
@json_option
def groups(config: Path | None, as_json: bool) -> None:
    """List the groups that share a budget."""
    from gateway.cli import show

    async def listed(book: KeyBook) -> list[dict[str, Any]]:
        return book.listed_groups()

    rows = asked(config, listed)
    if as_json:
        show.as_json(rows)
        return
    show.table(("group", "below", "today", "this month"), [
        (row["name"], row["parent"], money(row["spent_usd_day"], row["budget_usd_day"]),
         money(row["spent_usd_month"], row["budget_usd_month"])) for row in rows], right=("today", "this month"))


@command.command("group")
@click.argument("name")
@click.option("--parent", metavar="NAME", help='The group above it, whose budget counts as well; "" = none.')
@click.option("--budget-day", type=click.FloatRange(0), metavar="USD", help="US dollars per UTC day for all; 0 = no limit.")
@click.option("--budget-month", type=click.FloatRange(0), metavar="USD", help="US dollars per UTC month for all; 0 = no limit.")
@click.option("--delete", is_flag=True, help="Remove the group; no key may belong to it any more.")
@config_option
def group(name: str, parent: str | None, budget_day: float | None, budget_month: float | None, delete: bool,
          config: Path | None) -> None:
    """Make, change or remove a group of keys that share a budget."""
    changes = {"parent": parent, "budget_usd_day": budget_day, "budget_usd_month": budget_month}

    async def work(book: KeyBook) -> None:
        if delete:
            await book.drop_group(name)
        else:
            await book.put_group(msgspec.structs.replace(book.ring.groups.get(name) or GroupRow(name=name), **given(changes)))

    asked(config, work)
    click.echo(f"{name}: {'removed' if delete else 'kept'}")


@command.command("reencrypt")
@config_option
def reencrypt(config: Path | None) -> None:
    """Seal everything that lies in the store under the current master key, the first one.

    To change the master key: put the new one before the old one, restart the gateway, run this, then take the old one out.
    """
    async def work(store: "Offline") -> tuple[int, int]:
        n_keys = await store.accounts.reencrypt()
        try:
            return n_keys, await store.vault.reseal()
        except ValueError as error:
            raise click.ClickException(f"a rotated token {error}; provider keys were sealed anew, tokens were not") from None

    n_keys, n_tokens = stored(config, work)
    click.echo(f"sealed anew: {n_keys} provider keys, {n_tokens} tokens")
