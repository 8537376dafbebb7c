"""Which event loop runs? uvloop where it is installed; plain asyncio with GATEWAY_LOOP=asyncio."""
import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """None is asyncio's own choice."""
    if os.environ.get("GATEWAY_LOOP", "uvloop") == "asyncio":
        return None
    try:
        import uvloop
    except ImportError:             # there is none for Windows
        return None
    return uvloop.new_event_loop


def run(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=factory()) as runner:
        return runner.run(main)
