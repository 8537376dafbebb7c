"""Which client keys are there, and how does a tool change one? By its name, with what the API takes."""
from typing import Annotated, Final

from msgspec import Meta, structs

from gateway.admin import keys
from gateway.admin.errand import Ask, Errand, Facts
from gateway.admin.keys import GroupView, KeyEdit, KeyView, Rotation, Told

MOST: Final = 500
Ref = Annotated[str, Meta(min_length=1, max_length=200, description="Its name or id.")]


class One(Ask, frozen=True):
    """A key of the store."""
    key: Ref


class Change(KeyEdit, frozen=True, kw_only=True):
    """What is to be otherwise; what is left out stays."""
    key: Ref


class Renewal(Rotation, frozen=True, kw_only=True):
    """Which key, and for how long the old secret stays good."""
    key: Ref


class Listed(Facts, frozen=True):
    """All of them, the file's first. ``open``: there is none, so whoever is on this machine may ask."""
    open: bool
    total: int
    keys: list[KeyView]
    groups: list[GroupView]


async def listed(errand: Errand, asked: Ask) -> Listed:
    told = await keys.listed(errand)
    return Listed(open=told.open, total=len(told.keys), keys=told.keys[:MOST], groups=told.groups[:MOST])


async def change(errand: Errand, asked: Change) -> KeyView:
    errand.params = {"id": asked.key}
    errand.body = KeyEdit(**{name: value for name, value in structs.asdict(asked).items() if name != "key"})
    return await keys.change(errand)


async def rotate(errand: Errand, asked: Renewal) -> Told:
    errand.params = {"id": asked.key}
    errand.body = Rotation(grace_s=asked.grace_s)
    return await keys.rotate(errand)
