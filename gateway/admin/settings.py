"""What does the gateway go by, what would another configuration change, and is that one good? Shown without secrets; reload."""
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final

import msgspec

from gateway.admin.errand import Ask, Errand, Facts
from gateway.admin.masking import Edit, changes, flat, masked_text
from gateway.admin.office import Read
from gateway.config.load import SIZE_LIMIT, loads
from gateway.config.problems import ConfigError, Problem
from gateway.config.snapshot import Snapshot
from gateway.core.errors import GatewayError

TEXT_LIMIT: Final = 1 << 18


class Told(Facts, frozen=True):
    """A problem or a warning."""
    path: str
    message: str


class Setting(Facts, frozen=True):
    """One value that is not the default; secrets are ``***``."""
    path: str
    value: str


class View(Facts, frozen=True):
    """The configuration in force."""
    source: str                                  # its file; "" = none, keys were found in the environment
    loaded_at: float
    can_reload: bool
    settings: list[Setting]
    warnings: list[Told]
    text: str | None                             # the file without secrets; null where there is none, or it cannot be shown safely


class Text(Ask, frozen=True):
    """A configuration to look at; nothing is put in force."""
    text: Annotated[str, msgspec.Meta(max_length=TEXT_LIMIT)]


class Verdict(Facts, frozen=True):
    """What is wrong with it, and what it would change."""
    ok: bool
    problems: list[Told]
    warnings: list[Told]
    changes: list[Edit]


class Reloaded(Facts, frozen=True):
    """Refused with its problems (the old one stays), or in force."""
    ok: bool
    problems: list[Told]


async def view(visit: Errand) -> View:
    snapshot = visit.ground.snapshot
    settings, text = await visit.office.aside(_shown, snapshot)
    return View(source=str(snapshot.source or ""), loaded_at=snapshot.loaded_at, can_reload=visit.office.reload is not None,
                settings=settings, warnings=_told(snapshot.warnings), text=text)


async def validate(visit: Errand) -> Verdict:
    verdict: Verdict = await visit.office.aside(_judged, visit.body.text, visit.ground.snapshot)
    return verdict


async def diff(visit: Errand) -> Verdict:
    """The file as it is now against what is in force."""
    office = visit.office
    if office.read is None:
        raise GatewayError("bad_request", "This gateway was started without a configuration that could be read again.",
                           code="no_configuration")
    verdict: Verdict = await office.aside(_compared, office.read, visit.ground.snapshot)
    return verdict


async def reload(visit: Errand) -> Reloaded:
    if visit.office.reload is None:
        raise GatewayError("bad_request", "This gateway was started without a configuration that could be read again.",
                           code="no_configuration")
    problems = await visit.office.reload()
    visit.note("reload", str(visit.ground.snapshot.source or ""), "; ".join(f"{path}: {message}" for path, message in problems),
               ok=not problems)
    return Reloaded(ok=not problems, problems=_told(problems))


def _shown(snapshot: Snapshot) -> tuple[list[Setting], str | None]:
    """With three hundred providers that is a tenth of a second's work: not for the loop."""
    settings = [Setting(path=path, value=shown) for path, (shown, _) in flat(snapshot.config, snapshot.secrets).items()]
    return settings, _text(snapshot) if snapshot.source is not None else None


def _text(snapshot: Snapshot) -> str | None:
    try:
        with Path(snapshot.source or "").open("rb") as file:
            return masked_text(file.read(SIZE_LIMIT).decode("utf-8-sig"), snapshot.secrets)
    except (OSError, UnicodeDecodeError):
        return None


def _judged(text: str, running: Snapshot) -> Verdict:
    return _verdict(lambda: loads(text, os.environ), running)


def _compared(read: Read, running: Snapshot) -> Verdict:
    return _verdict(read, running)


def _verdict(read: Read, running: Snapshot) -> Verdict:
    try:
        found = read()
    except ConfigError as error:
        return Verdict(ok=False, problems=_told(error.problems), warnings=[], changes=[])
    secrets = (*running.secrets, *found.secrets)
    return Verdict(ok=True, problems=[], warnings=_told(found.warnings),
                   changes=changes(flat(running.config, secrets), flat(found.config, secrets)))


def _told(problems: Iterable[Problem]) -> list[Told]:
    return [Told(path=path, message=message) for path, message in problems]
