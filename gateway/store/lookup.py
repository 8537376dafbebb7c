"""How are records read where no gateway runs, or beside one? A connection of one's own that cannot write."""
import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from gateway.core.errors import GatewayError
from gateway.store.reading import Read

BUSY_S: Final = 5.0


@asynccontextmanager
async def looking(address: str) -> AsyncIterator[Read]:
    """``read`` for the functions of ``store.reading`` and ``store.totals``. Raises GatewayError where there is nothing to read."""
    if address.startswith("postgresql:"):
        from gateway.store.postgres import ServerReader
        reader = ServerReader(address)
        try:
            yield reader.rows
        finally:
            await reader.close()
        return
    if not address.startswith("sqlite:"):
        raise GatewayError("internal", "Only a store that is kept can be read from outside; this one lives in the gateway's memory.")
    path = Path(address.removeprefix("sqlite:"))
    if not path.exists():
        raise GatewayError("internal", f"There is no store at {path} yet.")
    db = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=BUSY_S, check_same_thread=False)

    async def read(sql: str, values: tuple[Any, ...]) -> Iterable[Any]:
        try:
            return await asyncio.to_thread(lambda: db.execute(sql, values).fetchall())
        except sqlite3.Error as error:
            hint = "; `gateway migrate` brings its tables up to date" if "no such" in str(error) else ""
            raise GatewayError("internal", f"The store cannot be read: {error}{hint}.") from None

    try:
        yield read
    finally:
        db.close()
