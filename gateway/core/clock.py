"""Time, injected: monotonic seconds for durations, wall seconds for what people read."""
import datetime
import functools
import time
import zoneinfo
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Monotonic seconds."""
        ...

    def wall(self) -> float:
        """Seconds since the epoch."""
        ...


class SystemClock:
    now = staticmethod(time.monotonic)
    wall = staticmethod(time.time)


def until_midnight(wall: float, pacific: bool = False) -> float:
    """Seconds to the next midnight, UTC or US/Pacific (Google's quotas: https://ai.google.dev/gemini-api/docs/rate-limits)."""
    zone = _pacific() if pacific else datetime.UTC
    local = datetime.datetime.fromtimestamp(wall, zone)
    day = local.date() + datetime.timedelta(days=1)
    return datetime.datetime.combine(day, datetime.time(), zone).timestamp() - wall


@functools.lru_cache(maxsize=1)
def _pacific() -> datetime.tzinfo:
    """A machine without a time zone database gets standard time: at worst an hour late."""
    try:
        return zoneinfo.ZoneInfo("America/Los_Angeles")
    except zoneinfo.ZoneInfoNotFoundError:
        return datetime.timezone(datetime.timedelta(hours=-8))


def moment(text: str) -> float:
    """Epoch seconds of an ISO date or time; one without a zone is UTC. Raises ValueError."""
    found = datetime.datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    return (found if found.tzinfo else found.replace(tzinfo=datetime.UTC)).timestamp()


def iso(wall: float) -> str:
    """As people and programs read it; empty for never."""
    return datetime.datetime.fromtimestamp(wall, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if wall else ""
