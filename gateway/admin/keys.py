"""Which client keys are there, and what may they? Made, changed, rotated and revoked here; a secret is told once."""
import datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gateway.admin.errand import Ask, Done, Errand, Facts
from gateway.core.errors import GatewayError, bad_request
from gateway.core.keys import GroupRow, Rules
from gateway.policy.scopes import granted

Patterns = Annotated[list[Annotated[str, Meta(max_length=400)]], Meta(min_length=1, max_length=200)]
Limit = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Dollars = Annotated[float, Meta(ge=0, le=1e9)]
Iso = Annotated[str, Meta(max_length=40, description="ISO date or time; empty = never.")]
Scopes = Annotated[tuple[Annotated[str, Meta(max_length=60)], ...], Meta(
    max_length=100, description='What it may do over MCP, such as "read:*" or "execute:completions"; none = nothing.')]
Note = Annotated[str, Meta(max_length=1_000)]


class KeyView(Facts, frozen=True):
    """A client key, without anything that opens a door. Times are ISO, "" = never; limits of 0 are none."""
    id: str
    name: str
    source: str                                  # config: changed in the file; store: changed here
    state: str                                   # active, expired, revoked, shadowed by one of the file
    hint: str
    created: str
    rotated: str
    old_secret_until: str
    revoked: str
    note: str
    models: list[str]
    rpm: int
    tpm: int
    rpd: int
    concurrency: int
    budget_usd_day: float
    budget_usd_month: float
    allow_unknown_price: bool
    group: str
    expires: str
    mcp_scopes: list[str]
    spent_usd_day: float
    spent_usd_month: float


class GroupView(Facts, frozen=True):
    """Keys that share a budget."""
    name: str
    parent: str
    budget_usd_day: float
    budget_usd_month: float
    spent_usd_day: float
    spent_usd_month: float


class Keys(Facts, frozen=True):
    """All of them, the file's first."""
    open: bool                                   # no key: whoever is on this machine may ask
    keys: list[KeyView]
    groups: list[GroupView]


class NewKey(Ask, frozen=True):
    """A key to be made."""
    name: Annotated[str, Meta(min_length=1, max_length=100)]
    models: Patterns = msgspec.field(default_factory=lambda: ["*"])
    rpm: Limit = 0
    tpm: Limit = 0
    rpd: Limit = 0
    concurrency: Limit = 0
    budget_usd_day: Dollars = 0.0
    budget_usd_month: Dollars = 0.0
    allow_unknown_price: bool = False
    group: Annotated[str, Meta(max_length=100)] = ""
    expires: Iso = ""
    mcp_scopes: Scopes = ()
    note: Note = ""


class KeyEdit(Ask, frozen=True):
    """What is to be otherwise; what is left out stays."""
    models: Patterns | UnsetType = UNSET
    rpm: Limit | UnsetType = UNSET
    tpm: Limit | UnsetType = UNSET
    rpd: Limit | UnsetType = UNSET
    concurrency: Limit | UnsetType = UNSET
    budget_usd_day: Dollars | UnsetType = UNSET
    budget_usd_month: Dollars | UnsetType = UNSET
    allow_unknown_price: bool | UnsetType = UNSET
    group: Annotated[str, Meta(max_length=100)] | UnsetType = UNSET
    expires: Iso | UnsetType = UNSET
    mcp_scopes: Scopes | UnsetType = UNSET
    note: Note | UnsetType = UNSET


class Rotation(Ask, frozen=True):
    """How the change-over goes."""
    grace_s: Annotated[float, Meta(ge=0, le=90 * 86_400, description="How long the old secret stays good.")] = 0.0


class Told(Facts, frozen=True):
    """A key with its secret, which is never told again."""
    key: KeyView
    secret: str


class GroupEdit(Ask, frozen=True):
    """A group's budget, and the group that it is a part of."""
    parent: Annotated[str, Meta(max_length=100)] = ""
    budget_usd_day: Dollars = 0.0
    budget_usd_month: Dollars = 0.0


async def listed(visit: Errand) -> Keys:
    ground = visit.ground
    book = ground.keybook
    return Keys(open=ground.keys.open, keys=msgspec.convert(await book.listed(), list[KeyView]),
                groups=msgspec.convert(book.listed_groups(), list[GroupView]))


async def create(visit: Errand) -> Told:
    asked: NewKey = visit.body
    rules = Rules(**_rules(asked))
    _within(visit, rules.mcp_scopes)
    made = await visit.ground.keybook.create(asked.name, rules, asked.note)
    visit.note("key.create", made.row.name, _limits(rules))
    return Told(key=_view(visit, made.row), secret=made.secret)


async def change(visit: Errand) -> KeyView:
    asked: KeyEdit = visit.body
    changes = _rules(asked)
    await _held(visit)
    _within(visit, changes.get("mcp_scopes", ()))
    row = await visit.ground.keybook.update(visit.params["id"], None if asked.note is UNSET else str(asked.note), **changes)
    visit.note("key.change", row.name, ", ".join(f"{name}={value}" for name, value in changes.items()))
    return _view(visit, row)


async def rotate(visit: Errand) -> Told:
    await _held(visit)
    made = await visit.ground.keybook.rotate(visit.params["id"], visit.body.grace_s)
    visit.note("key.rotate", made.row.name, f"the old secret is good for {visit.body.grace_s:g} s")
    return Told(key=_view(visit, made.row), secret=made.secret)


async def revoke(visit: Errand) -> KeyView:
    await _held(visit)
    row = await visit.ground.keybook.revoke(visit.params["id"])
    visit.note("key.revoke", row.name)
    return _view(visit, row)


async def put_group(visit: Errand) -> Done:
    asked: GroupEdit = visit.body
    name = visit.params["name"]
    await visit.ground.keybook.put_group(GroupRow(name=name, parent=asked.parent, budget_usd_day=asked.budget_usd_day,
                                                  budget_usd_month=asked.budget_usd_month))
    visit.note("group.save", name, f"${asked.budget_usd_day:g} a day, ${asked.budget_usd_month:g} a month")
    return Done()


async def drop_group(visit: Errand) -> Done:
    await visit.ground.keybook.drop_group(visit.params["name"])
    visit.note("group.drop", visit.params["name"])
    return Done()


async def _held(visit: Errand) -> None:
    """Whoever learns a key's secret, or changes what the key may do, has its scopes."""
    _within(visit, (await visit.ground.keybook.find(visit.params["id"])).rules.mcp_scopes)


def _within(visit: Errand, wanted: tuple[str, ...]) -> None:
    """Nobody hands out scopes that they do not hold. Raises forbidden."""
    if beyond := granted(wanted) - visit.scopes:
        raise GatewayError("forbidden", f"That key holds, or would hold, scopes that you do not: {', '.join(sorted(beyond))}.",
                           param="mcp_scopes", code="insufficient_scope")


def _rules(asked: NewKey | KeyEdit) -> dict[str, Any]:
    """The fields of ``core.keys.Rules`` that were given."""
    found = {name: value for name in Rules.__struct_fields__ if (value := getattr(asked, name, UNSET)) is not UNSET}
    if "models" in found:
        found["models"] = tuple(found["models"])
    if asked.expires is not UNSET:
        found["expires_at"] = _moment(str(asked.expires))
    return found


def _moment(text: str) -> float:
    if not text.strip():
        return 0.0
    try:
        moment = datetime.datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
        return max((moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp(), 1.0)
    except (ValueError, OverflowError):
        raise bad_request("expires: write an ISO date such as 2027-01-31, or nothing", "expires") from None


def _limits(rules: Rules) -> str:
    told = {name: getattr(rules, name) for name in Rules.__struct_fields__}
    return ", ".join(f"{name}={value}" for name, value in told.items() if value != getattr(Rules(), name))


def _view(visit: Errand, row: Any) -> KeyView:
    return msgspec.convert(visit.ground.keybook.view(row), KeyView)
