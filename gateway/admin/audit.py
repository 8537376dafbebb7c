"""Who changed what? The audit log, newest first."""
from typing import Annotated

import msgspec

from gateway.admin.errand import Ask, Errand, Facts
from gateway.core.ports import Change


class Page(Ask, frozen=True):
    """Which part."""
    before: Annotated[int, msgspec.Meta(ge=0, le=1 << 62, description="Only changes with a smaller number; 0 = the newest.")] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 100


class Changes(Facts, frozen=True):
    """Newest first."""
    changes: list[Change]


async def audit(visit: Errand) -> Changes:
    return Changes(changes=await visit.ground.store.audit.last(visit.query.limit, visit.query.before))
