"""Keys are made, changed, rotated and revoked in one place; a change is in force when it returns, and no secret is told twice."""
import asyncio
import hashlib
import re

import pytest

from gateway.core.errors import GatewayError
from gateway.core.keys import GroupRow, Rules
from gateway.policy.keybook import KeyBook
from gateway.policy.keys import ClientKey, KeyRing, digest
from gateway.store.memory_keys import MemoryKeys
from tests.unit.store.scene import StillClock


@pytest.fixture
def clock():
    return StillClock()


@pytest.fixture
def store():
    return MemoryKeys()


def book_of(store, clock, *configured, groups=()):
    ring = KeyRing(wall=clock.wall)
    ring.configure([ClientKey(name=name, sha256=digest(f"gw-{name}")) for name in configured], groups)
    return KeyBook(store, ring, clock)


@pytest.fixture
async def book(store, clock):
    book = book_of(store, clock, "laptop")
    await book.open()
    return book


def holder(book, secret):
    return book.ring.authenticate({"x-api-key": secret}).name


def refusal(book, secret):
    with pytest.raises(GatewayError) as caught:
        book.ring.authenticate({"x-api-key": secret})
    return caught.value.status, caught.value.message


async def refused(work, field):
    with pytest.raises(GatewayError) as caught:
        await work
    assert caught.value.param == field and caught.value.status in (400, 404)
    return caught.value.message


async def test_a_key_works_at_once_and_is_kept_by_its_digest(book, store):
    made = await book.create("ci", Rules(rpm=5, models=("gpt-*",)), "for the build")
    assert re.fullmatch(r"gw-[A-Za-z0-9_-]{43}", made.secret)
    assert holder(book, made.secret) == "ci" and holder(book, "gw-laptop") == "laptop"
    kept, = await store.keys()
    assert kept.sha256 == hashlib.sha256(made.secret.encode()).hexdigest()
    assert made.secret not in repr(made) and made.secret not in repr(kept)


async def test_what_is_listed_holds_no_secret_and_no_digest(book):
    made = await book.create("ci")
    rows = await book.listed()
    assert [(row["name"], row["source"], row["state"]) for row in rows] == [("laptop", "config", "active"), ("ci", "store", "active")]
    assert made.secret not in str(rows) and made.row.sha256 not in str(rows)
    assert rows[1]["hint"] == made.secret[:8] + "…"


async def test_a_revoked_key_is_refused_at_once_and_for_good(book):
    made = await book.create("ci")
    await book.revoke("ci")
    assert refusal(book, made.secret) == (401, "This client key was revoked.")
    assert "revoked" in await refused(book.rotate("ci"), "key") and "revoked" in await refused(book.update("ci", rpm=1), "key")


async def test_revoking_the_last_key_does_not_open_the_door(store, clock):
    book = book_of(store, clock)
    await book.open()
    assert book.ring.open and book.ring.authenticate({}).anonymous
    await book.create("ci")
    await book.revoke("ci")
    assert not book.ring.open and refusal(book, "anything")[0] == 401


async def test_a_rotated_key_goes_on_for_its_grace(book, clock):
    first = await book.create("ci")
    second = await book.rotate(first.row.id, grace_s=60)
    assert holder(book, first.secret) == holder(book, second.secret) == "ci"
    third = await book.rotate("ci", grace_s=30)
    assert {holder(book, made.secret) for made in (first, second, third)} == {"ci"}
    clock.at += 30
    assert refusal(book, second.secret) == (401, "This client key has expired.") and holder(book, first.secret) == "ci"
    clock.at += 30
    assert refusal(book, first.secret)[0] == 401 and holder(book, third.secret) == "ci"


async def test_rotated_without_grace_only_the_new_secret_is_good(book):
    first = await book.create("ci")
    await book.rotate("ci", grace_s=60)
    last = await book.rotate("ci")
    assert refusal(book, first.secret) == (401, "This client key is not valid.")
    assert holder(book, last.secret) == "ci"


async def test_an_expired_key_is_refused_and_says_so_in_the_list(book, clock):
    made = await book.create("ci", Rules(expires_at=clock.at + 10))
    assert holder(book, made.secret) == "ci"
    clock.at += 10
    assert refusal(book, made.secret) == (401, "This client key has expired.")
    assert (await book.listed())[1]["state"] == "expired"
    await book.update("ci", expires_at=0.0)
    assert holder(book, made.secret) == "ci"


async def test_the_old_secret_does_not_outlive_the_key(book, clock):
    first = await book.create("ci", Rules(expires_at=clock.at + 10))
    await book.rotate("ci", grace_s=3600)
    clock.at += 10
    assert refusal(book, first.secret)[0] == 401


async def test_an_update_is_in_force_at_once(book):
    made = await book.create("ci")
    await book.update("ci", note="new", rpm=7, models=("a/*",), budget_usd_day=1.5)
    principal = book.ring.authenticate({"x-api-key": made.secret})
    assert (principal.rpm, principal.patterns, principal.budgeted) == (7, ("a/*",), True)


@pytest.mark.parametrize(("name", "rules", "field"), [
    ("laptop", Rules(), "name"), ("ci", Rules(), "name"), ("", Rules(), "name"), ("x" * 101, Rules(), "name"), ("a\nb", Rules(), "name"),
    ("anonymous", Rules(), "name"), ("new", Rules(models=()), "models"), ("new", Rules(models=(" ",)), "models"),
    ("new", Rules(rpm=-1), "rpm"), ("new", Rules(budget_usd_day=float("nan")), "budget_usd_day"),
    ("new", Rules(budget_usd_month=-1.0), "budget_usd_month"), ("new", Rules(group="nobody"), "group"),
    ("new", Rules(expires_at=float("inf")), "expires_at"),
])
async def test_what_makes_no_sense_is_refused_by_its_field(book, name, rules, field):
    await book.create("ci")
    await refused(book.create(name, rules), field)


async def test_keys_that_are_not_there_are_told(book):
    assert "'nobody'" in await refused(book.revoke("nobody"), "key")
    assert "configuration" in await refused(book.revoke("laptop"), "key")
    await book.create("ci")
    assert "color" in await refused(book.update("ci", color=1), "color")
    await refused(book.rotate("ci", grace_s=-1), "grace")


async def test_what_is_kept_under_a_revoked_name_goes_to_nobody(book):
    await book.create("ci")
    await book.revoke("ci")
    await refused(book.create("ci"), "name")
    assert holder(book, (await book.create("ci-2")).secret) == "ci-2"


async def test_two_who_make_the_same_name_at_once_get_one_key(book, store):
    done = await asyncio.gather(*(book.create("ci") for _ in range(5)), return_exceptions=True)
    assert sum(isinstance(one, GatewayError) for one in done) == 4 and len(await store.keys()) == 1


async def test_another_process_s_change_is_taken_over(store, clock, book):
    other = book_of(store, clock)
    await other.open()
    made = await other.create("ci")
    assert refusal(book, made.secret)[0] == 401
    assert await book.refresh() and not await book.refresh()
    assert holder(book, made.secret) == "ci"


async def test_the_configuration_s_key_wins_over_one_of_the_same_name(store, clock):
    first = book_of(store, clock)
    await first.open()
    made = await first.create("laptop")
    second = book_of(store, clock, "laptop")
    await second.open()
    assert refusal(second, made.secret)[0] == 401 and holder(second, "gw-laptop") == "laptop"
    assert [row["state"] for row in await second.listed()] == ["active", "shadowed"]


async def test_a_reload_of_the_configuration_keeps_the_store_s_keys(book):
    made = await book.create("ci")
    book.ring.configure([])
    assert holder(book, made.secret) == "ci" and refusal(book, "gw-laptop")[0] == 401


async def test_groups_are_made_changed_and_dropped(store, clock):
    book = book_of(store, clock, groups=[GroupRow(name="org", budget_usd_month=100.0)])
    await book.open()
    await book.put_group(GroupRow(name="team", parent="org", budget_usd_day=5.0))
    made = await book.create("ci", Rules(group="team"))
    scopes = book.ring.authenticate({"x-api-key": made.secret}).scopes
    assert [(one.name, one.day, one.month) for one in scopes] == [
        ("key:ci", 0, 0), ("group:team", 5_000_000_000, 0), ("group:org", 0, 100_000_000_000)]
    assert "ci" in await refused(book.drop_group("team"), "group")
    assert "below" in await refused(book.put_group(GroupRow(name="team", parent="team")), "parent")
    await refused(book.put_group(GroupRow(name="x", parent="nobody")), "parent")
    await refused(book.put_group(GroupRow(name="x", budget_usd_day=-1.0)), "budget_usd_day")
    await book.revoke("ci")
    await book.drop_group("team")
    assert [group["name"] for group in book.listed_groups()] == ["org"]
    await refused(book.drop_group("org"), "group")


class Unreadable(MemoryKeys):
    async def keys(self):
        raise GatewayError("internal", "cannot be read", status=503)


async def test_keys_that_cannot_be_read_keep_the_door_shut(clock):
    book = book_of(Unreadable(), clock)
    with pytest.raises(GatewayError):
        await book.open()
    assert refusal(book, "anything")[0] == 503 and not book.ring.open
    with_key = book_of(Unreadable(), clock, "laptop")
    with pytest.raises(GatewayError):
        await with_key.open()
    assert holder(with_key, "gw-laptop") == "laptop" and refusal(with_key, "gw-other")[0] == 503


def test_a_ring_that_wants_keys_is_closed_without_any():
    ring = KeyRing()
    ring.configure([], required=True)
    with pytest.raises(GatewayError):
        ring.authenticate({})
