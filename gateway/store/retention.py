"""How long is what kept? Rows for as many days as the operator says, bodies shorter, sums longer; the oldest go, bit by bit."""
import asyncio
from typing import Any, Final

from gateway.store.batch import first_id
from gateway.store.reading import Read
from gateway.store.rollups import DAY_S, HOUR_S
from gateway.store.writer import Row, Writer

ARTIFACT_DAYS: Final = 7
HOURLY_DAYS: Final = 92          # at least; the rows' own days where those are more
DAILY_DAYS: Final = 1_100
MAX_ARTIFACTS: Final = 20_000
MAX_ARTIFACT_BYTES: Final = 1 << 30
CHUNK: Final = 2_000             # rows that go in one transaction: some 20 ms of the writer
HOURS: Final = 24                # of sums that go at once
PAUSE_S: Final = 0.1
MAX_CHUNKS: Final = 500          # in one round; what is left goes with the next


def _oldest(table: str, column: str) -> tuple[str, str]:
    """(is there something older?, let some of it go)"""
    return (f"SELECT 1 FROM {table} WHERE {column} < ? LIMIT 1",
            f"DELETE FROM {table} WHERE {column} IN "
            f"(SELECT DISTINCT {column} FROM {table} WHERE {column} < ? ORDER BY {column} LIMIT ?)")


_TRIM: Final = """DELETE FROM artifacts WHERE request_id IN (
    SELECT request_id FROM (
        SELECT request_id, row_number() OVER newest AS place, sum(n_kept) OVER newest AS upto FROM artifacts
        WINDOW newest AS (ORDER BY request_id DESC, kind ROWS UNBOUNDED PRECEDING)
    ) AS aged WHERE place > ? OR upto > ?)"""


async def expire(writer: Writer, read: Read, wall: float, days: int) -> int:
    """Let go of what is too old; returns in how many steps. Raises GatewayError where the store cannot be read."""
    hourly = int(wall - max(days, HOURLY_DAYS) * DAY_S) // HOUR_S * HOUR_S
    steps: list[tuple[tuple[str, str], Any, int]] = [
        (_oldest("artifacts", "request_id"), first_id(wall - min(days, ARTIFACT_DAYS) * DAY_S), CHUNK),
        (_oldest("attempts", "request_id"), first_id(wall - days * DAY_S), CHUNK),
        (_oldest("requests", "id"), first_id(wall - days * DAY_S), CHUNK),
        *[(_oldest(table, "at"), hourly, HOURS) for table in ("usage_hourly", "attempts_hourly", "timings_hourly")],
        (_oldest("usage_daily", "at"), int(wall - max(days, DAILY_DAYS) * DAY_S), HOURS),
    ]
    done = 0
    for (any_left, delete), before, chunk in steps:
        while done < MAX_CHUNKS and list(await read(any_left, (before,))):
            writer.put(Row(delete, (before, chunk), droppable=False))
            if not await writer.flush():
                return done
            done += 1
            await asyncio.sleep(PAUSE_S)             # requests' rows come in between
    if list(await read("SELECT 1 FROM artifacts LIMIT 1", ())):
        writer.put(Row(_TRIM, (MAX_ARTIFACTS, MAX_ARTIFACT_BYTES)))
    return done
