"""Who is signed in, and who has guessed too often? Both are bounded, and both forget."""
import hashlib
import secrets
from typing import Final

import msgspec

from gateway.core.bounded import LruMap

COOKIE: Final = "gateway_admin"
MAX_SESSIONS: Final = 64
IDLE_S: Final = 3_600.0                          # without a click; a page that only refreshes itself does not count
LIFE_S: Final = 12 * 3_600.0
TOLD_S: Final = 60.0                             # who is active is told to other workers so often
MAX_PEERS: Final = 4_096
FREE_TRIES: Final = 5
LONGEST_WAIT_S: Final = 900.0


class Session(msgspec.Struct):
    """One browser. ``stamp`` is a digest of the password's hash that it signed in with: a new password ends it."""
    stamp: str
    began: float
    seen: float


class Sessions:
    """Tokens are kept as digests only. ``news``: sessions that other workers should know of; None = it has ended."""

    def __init__(self, limit: int = MAX_SESSIONS) -> None:
        self._open: LruMap[bytes, Session] = LruMap(limit)
        self.news: dict[bytes, Session | None] | None = None

    def begin(self, stamp: str, now: float) -> str:
        """A new session's token."""
        token = secrets.token_urlsafe(32)
        self._changed(_digest(token), Session(_digest(stamp).hex(), now, now))
        return token

    def find(self, token: str, stamp: str, now: float, active: bool = True) -> Session | None:
        """The session of this token, if it is still good. ``active``: a person did something, so it lives on."""
        key = _digest(token)
        found = self._open.get(key)
        if found is None:
            return None
        if found.stamp != _digest(stamp).hex() or now - found.seen >= IDLE_S or now - found.began >= LIFE_S:
            del self._open[key]
            return None
        if active:
            if self.news is not None and now - found.seen >= TOLD_S:
                self.news[key] = found
            found.seen = now
            self._open.move_to_end(key)
        return found

    def end(self, token: str) -> None:
        self._changed(_digest(token), None)

    def follow(self, key: bytes, session: Session | None) -> None:
        """What another worker tells."""
        if session is None:
            self._open.pop(key, None)
        else:
            self._open.put(key, session)

    def _changed(self, key: bytes, session: Session | None) -> None:
        self.follow(key, session)
        if self.news is not None:
            self.news[key] = session

    def __len__(self) -> int:
        return len(self._open)


class Throttle:
    """Five free guesses, then a pause that doubles with each wrong one."""

    def __init__(self, limit: int = MAX_PEERS) -> None:
        self._wrong: LruMap[str, tuple[int, float]] = LruMap(limit)      # peer -> (wrong guesses, when it may try again)
        self._known: LruMap[str, None] = LruMap(MAX_SESSIONS)            # peers from which somebody signed in

    def wait_s(self, peer: str, now: float) -> float:
        """How long until this peer may guess again; 0 = now."""
        return max(self._wrong.get(peer, (0, 0.0))[1] - now, 0.0)

    def wrong(self, peer: str, now: float) -> None:
        n = self._wrong.get(peer, (0, 0.0))[0] + 1
        pause_s = min(2.0 ** min(n - FREE_TRIES, 20), LONGEST_WAIT_S) if n >= FREE_TRIES else 0.0
        self._wrong.put(peer, (n, now + pause_s))

    def right(self, peer: str) -> None:
        self._wrong.pop(peer, None)
        self._known.put(peer, None)

    def knows(self, peer: str) -> bool:
        return peer in self._known


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
