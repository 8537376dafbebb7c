"""What do some finished requests become? Rows with their numbers, and the sums that they add, whoever writes them."""
import logging
import os
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from gateway.core.call import Call
from gateway.store.records import attempt_values, request_values
from gateway.store.rollups import statements

log = logging.getLogger("gateway.store")

MAX_PENDING: Final = 256         # calls that wait for a batch: they hold on to what was asked


class Ids:
    """Numbers that grow with time: milliseconds, and below them who gave it and in which order. No two processes share one."""

    SHIFT: Final = 20

    def __init__(self, mark: int | None = None) -> None:
        self._mark = (os.getpid() ^ int.from_bytes(os.urandom(2))) % 1_024 << 10 if mark is None else mark << 10
        self._last = 0

    def next(self, wall: float) -> int:
        self._last = max(self._last + 1, first_id(wall) | self._mark)
        return self._last


def first_id(wall: float) -> int:
    """The least id that a request can have that ended then."""
    return int(wall * 1_000) << Ids.SHIFT


class Records(msgspec.Struct, frozen=True):
    """What is to be written of some requests: rows of both tables, and (SQL, key, sums) of the roll-ups."""
    calls: list[Call]
    requests: list[tuple[Any, ...]]
    attempts: list[tuple[Any, ...]]
    sums: list[tuple[str, tuple[Any, ...], list[Any]]]


def records(calls: Sequence[Call], ids: Ids) -> Records:
    """A call that cannot be told is said in the log and left out."""
    told: list[Call] = []
    requests, attempts = [], []
    for call in calls:
        id_ = ids.next(call.wall + call.ended - call.started)
        try:
            row = request_values(id_, call)
            attempts += [attempt_values(id_, n, attempt, call.started) for n, attempt in enumerate(call.attempts, 1)]
        except Exception:
            log.exception("the request %s cannot be recorded", call.id)
            continue
        requests.append(row)
        told.append(call)
    return Records(told, requests, attempts, statements(told))
