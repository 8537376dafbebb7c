"""Which work is too long for the event loop, and who does it? A few threads of its own, so that the default ones stay free."""
import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

LARGE_BYTES: Final = 1 << 20                     # reading or writing JSON of more is done here
_WORKERS: Final = ThreadPoolExecutor(2, "gateway-aside")
_ONE: Final = ThreadPoolExecutor(1, "gateway-alone")


async def aside(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do it where nobody else waits for it."""
    return await asyncio.get_running_loop().run_in_executor(_WORKERS, lambda: work(*args, **kwargs))


async def alone(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The same for Python code that runs for long: one at a time, since each such thread keeps the loop from the interpreter."""
    return await asyncio.get_running_loop().run_in_executor(_ONE, lambda: work(*args, **kwargs))
