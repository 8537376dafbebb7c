"""What the pipeline needs from outside, as protocols: it never imports the store or the metrics that implement them."""
from typing import Protocol

from gateway.core.call import Call


class Journal(Protocol):
    """Keeps finished calls. Synchronous and cheap: implementations queue and write in the background."""

    def add(self, call: Call) -> None: ...

    async def close(self) -> None: ...
