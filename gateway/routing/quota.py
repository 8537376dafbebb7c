"""How much of an account's quota is used, and when does it come back? As the provider's own headers said last.

Two families of headers are read: ``x-ratelimit-{limit,remaining,reset}-*`` of OpenAI and those who copy it, and Anthropic's
``anthropic-ratelimit-*`` (https://docs.anthropic.com/en/api/rate-limits), with the utilisation of subscription windows. A value
is believed until its reset, or five minutes where none is stated.
"""
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from gateway.core.bounded import LruMap
from gateway.providers.hints import stated_s
from gateway.routing.places import Key

UNSTATED_S: Final = 300.0
SESSION_S: Final = 18_000.0                   # the window of five hours
WEEK_S: Final = 604_800.0
DAY_S: Final = 86_400.0
MONTH_S: Final = 2_592_000.0
WINDOW_S: Final[dict[str, float]] = {"minute": 60.0, "session": SESSION_S, "daily": DAY_S, "weekly": WEEK_S, "monthly": MONTH_S}


class Used(msgspec.Struct, frozen=True, gc=False):
    """One window: share used (0 to 1), when it starts anew, until when this is believed (both monotonic; 0 = unknown)."""
    share: float
    reset_at: float
    until: float


# (window, header of the limit, of what remains, of the reset)
_COUNTED: Final[tuple[tuple[str, str, str, str], ...]] = (
    ("minute", "x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("minute", "x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("daily", "x-ratelimit-limit-requests-day", "x-ratelimit-remaining-requests-day", "x-ratelimit-reset-requests-day"),
    ("daily", "x-ratelimit-limit-tokens-day", "x-ratelimit-remaining-tokens-day", "x-ratelimit-reset-tokens-day"),
    ("minute", "anthropic-ratelimit-requests-limit", "anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("minute", "anthropic-ratelimit-input-tokens-limit", "anthropic-ratelimit-input-tokens-remaining",
     "anthropic-ratelimit-input-tokens-reset"),
)
_SHARED: Final[tuple[tuple[str, str, str], ...]] = (
    ("session", "anthropic-ratelimit-unified-5h-utilization", "anthropic-ratelimit-unified-5h-reset"),
    ("weekly", "anthropic-ratelimit-unified-7d-utilization", "anthropic-ratelimit-unified-7d-reset"),
)


class Standing(msgspec.Struct, frozen=True, gc=False):
    """All windows of one account, and what orders ask of them: reckoned once when they change, not at every order."""
    windows: Mapping[str, Used]
    share: float                              # of the fullest window
    until: float                              # the first of them is believed until then
    spent: bool                               # one of them is used up
    resets: Mapping[str, float]               # window -> when it starts anew, where that is known
    session: Used | None
    long: Used | None                         # the week, or the day of those who state no weeks


def _standing(windows: Mapping[str, Used]) -> Standing:
    every = windows.values()
    return Standing(windows, max(used.share for used in every), min(used.until for used in every),
                    any(used.share >= 1 for used in every), {name: used.reset_at for name, used in windows.items() if used.reset_at},
                    windows.get("session"), windows.get("weekly") or windows.get("daily"))


class Quotas:
    """The last word of every account; bounded."""

    __slots__ = ("_accounts",)

    def __init__(self, limit: int = 10_000) -> None:
        self._accounts: LruMap[Key, Standing] = LruMap(limit)

    def __bool__(self) -> bool:
        return bool(self._accounts)

    def set(self, account: Key, window: str, share: float, reset_s: float | None, now: float) -> None:
        before = self._accounts.get(account)
        reset_at = now + reset_s if reset_s is not None else 0.0
        used = Used(min(max(share, 0.0), 1.0), reset_at, reset_at or now + UNSTATED_S)
        self._accounts.put(account, _standing({**(before.windows if before is not None else {}), window: used}))

    def get(self, account: Key, now: float) -> Mapping[str, Used]:
        """Windows that are still believed; one whose reset has passed is free again."""
        found = self.standings((account,), now)[0]
        return found.windows if found is not None else {}

    def used(self, account: Key, now: float) -> float:
        """The fullest window's share, 0 when nothing is known."""
        found = self._accounts.get(account)
        if found is not None and found.until <= now:
            found = self._forget(account, found, now)
        return 0.0 if found is None else found.share

    def standings(self, accounts: Iterable[Key], now: float) -> list[Standing | None]:
        """Of many accounts at one instant, None where nothing is known."""
        get = self._accounts.get
        return [found if (found := get(account)) is None or found.until > now else self._forget(account, found, now)
                for account in accounts]

    def _forget(self, account: Key, known: Standing, now: float) -> Standing | None:
        """Windows that began anew are not believed any longer."""
        windows = {window: used for window, used in known.windows.items() if used.until > now}
        if not windows:
            del self._accounts[account]
            return None
        found = self._accounts[account] = _standing(windows)
        return found

    def learn(self, account: Key, headers: Mapping[str, str], now: float, wall: float) -> None:
        """Headers of any answer. Finding none costs a few look-ups."""
        worst: dict[str, tuple[float, float | None]] = {}
        for window, limit, remaining, reset in _COUNTED:
            left = headers.get(remaining)
            if left is None:
                continue
            most, still = _number(headers.get(limit)), _number(left)
            if most and still is not None:
                share, reset_s = 1 - still / most, duration_s(headers.get(reset), wall)
                span = "daily" if window == "minute" and reset_s is not None and reset_s > 3600 else window
                if span not in worst or worst[span][0] < share:
                    worst[span] = (share, reset_s)
        for window, used, reset in _SHARED:
            share_of = _number(headers.get(used))
            if share_of is not None:
                worst[window] = (share_of, duration_s(headers.get(reset), wall))
        for window, (share, reset_s) in worst.items():
            self.set(account, window, share, reset_s, now)


def _number(text: str | None) -> float | None:
    try:
        found = float(text) if text is not None else None
    except ValueError:
        return None
    return found if found is not None and 0 <= found < 1e15 else None


def duration_s(text: str | None, wall: float) -> float | None:
    """Seconds until a reset as headers write it: seconds, ``6m0s``, an epoch or an ISO time."""
    found = stated_s(text, wall)
    return max(found, 0.0) if found is not None else None
