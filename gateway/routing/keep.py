"""What must a restart not forget, and other processes know? Cooldowns, breakers, levels and learned limits as rows, and back.

Times in rows are epoch seconds, since monotonic clocks begin anew with the process. Health notes which keys changed; a batch has
those only.
"""
from typing import Any, Final

import msgspec

from gateway.core.ports import StateRow
from gateway.routing.breaker import Breaker
from gateway.routing.cooldown import DAY_S, Cooldown
from gateway.routing.health import Health
from gateway.routing.places import Key

_KEPT_S: Final = DAY_S                        # counts without an end of their own
BOOKS: Final = ("cooldown", "level", "breaker", "learned")


def changes(health: Health, now: float, wall: float) -> list[StateRow]:
    """What changed since the last call; the notes are cleared."""
    noted, health.changed = health.changed, set()
    learned = health.learned.data() if any(book == "learned" for book, _ in noted) else {}
    return [_row(health, book, key, learned, now, wall) for book, key in noted]


def restore(health: Health, rows: list[StateRow], now: float, wall: float) -> None:
    """Take over what is still true. A row that cannot be read is left out: a store may be older than this version."""
    for row in rows:
        if row.value is None or row.until <= wall:
            continue
        try:
            key = msgspec.json.decode(row.key, type=tuple[str, str, str])
            _take(health, row.book, key, row.value, row.until - wall + now, now, wall)
        except (msgspec.MsgspecError, KeyError, TypeError, ValueError):
            continue


def follow(health: Health, rows: list[StateRow], now: float, wall: float) -> None:
    """What another process has just learned: the same, and what it forgot is forgotten. A longer cooldown of our own stands."""
    for row in rows:
        try:
            key = msgspec.json.decode(row.key, type=tuple[str, str, str])
        except msgspec.MsgspecError:
            continue
        if row.value is None:
            _forget(health, row.book, key)
        elif row.book != "cooldown" or (own := health._cooldowns.get(key)) is None or own.until < row.until - wall + now:
            restore(health, [row], now, wall)


def _forget(health: Health, book: str, key: Key) -> None:
    if book == "cooldown":
        health._cooldowns.pop(key, None)
        health.trials.pop(key, None)
    elif book == "level":
        health.levels.pop(key, None)


def _row(health: Health, book: str, key: Key, learned: dict[Key, tuple[dict[str, Any], float]], now: float,
         wall: float) -> StateRow:
    value: dict[str, Any] | None = None
    until = now + _KEPT_S
    if book == "cooldown" and (cooldown := health._cooldowns.get(key)) is not None:
        until = cooldown.until
        value = {"kind": cooldown.kind, "source": cooldown.source, "since": cooldown.since - now + wall}
    elif book == "level" and (level := health.levels.get(key)) is not None:
        value = {"count": level[0], "ended": level[1] - now + wall}
    elif book == "breaker" and (breaker := health.breakers.get(key[0])) is not None:
        value = breaker.data(now, wall)
    elif book == "learned" and key in learned:
        value, until = learned[key]
    return StateRow(book, msgspec.json.encode(key).decode(), value, until - now + wall)


def _take(health: Health, book: str, key: Key, value: dict[str, Any], until: float, now: float, wall: float) -> None:
    if book == "cooldown":
        health.rest(key, Cooldown(until, value["kind"], value["source"], value["since"] - wall + now))
        if value["source"] in ("heuristic", "breaker"):
            health.trials.put(key, 0.0)
    elif book == "level":
        health.levels.put(key, (int(value["count"]), value["ended"] - wall + now))
    elif book == "breaker":
        found = Breaker.of(value, now, wall)
        health.breakers.put(key[0], found)
        if found.until and found.until <= now:
            health.trials.put(key, 0.0)
    elif book == "learned":
        health.learned.restore(key, value, until)
