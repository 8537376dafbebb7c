"""What does the operator's side stand on? The gateway's current ground, who is signed in, what was logged and changed lately."""
import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from gateway.admin.sessions import Sessions, Throttle
from gateway.config.problems import Problem
from gateway.config.schema import Admin
from gateway.config.snapshot import Snapshot
from gateway.core.ports import Change
from gateway.core.redact import mask
from gateway.jobs.accounts import Accounts
from gateway.jobs.listing import Means
from gateway.observe.recent import Recent
from gateway.observe.series import Series
from gateway.pipeline.ground import Ground

Reload = Callable[[], Awaitable[list[Problem]]]
Read = Callable[[], Snapshot]


async def nobody(what: str, given: Any) -> list[Any]:
    return []


class Place(Protocol):
    """Where the current ground is found."""
    ground: Ground
    started: float
    version: str


class Office:
    """One for the process; outlives reloads. ``reload`` and ``read`` are set where a configuration can be loaded anew."""

    def __init__(self, place: Place, recent: Recent, series: Series) -> None:
        self.place = place
        self.recent = recent
        self.series = series
        self.sessions = Sessions()
        self.throttle = Throttle()
        self.accounts: Accounts | None = None
        self.others: Callable[[str, Any], Awaitable[list[Any]]] = nobody     # what the other workers say to a question
        self.reload: Reload | None = None
        self.read: Read | None = None
        self.means: Means | None = None              # to ask providers outside of a request
        self.tails = 0                               # logs that are followed now
        self.checking = 0                            # passwords that wait for their check
        self._threads: ThreadPoolExecutor | None = None

    @property
    def ground(self) -> Ground:
        return self.place.ground

    @property
    def settings(self) -> Admin:
        return self.place.ground.snapshot.admin

    async def aside(self, work: Callable[..., Any], *given: Any) -> Any:
        """Do something slow on the one thread of this office: never on the loop, and never on threads that requests need."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(1, "gateway-admin")
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *given)

    def note(self, who: str, action: str, subject: str = "", detail: str = "", ok: bool = True) -> None:
        """Write a change, or a refused try, into the audit log."""
        secrets = self.ground.snapshot.secrets
        self.ground.store.audit.add(Change(at=time.time(), who=who, action=action, subject=mask(subject, secrets)[:200],
                                           detail=mask(detail, secrets)[:1_000], ok=ok))

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
