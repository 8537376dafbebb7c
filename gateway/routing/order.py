"""In which order are the targets of a name tried? One pure function a strategy; the accounts of a target rotate anyway."""
from collections.abc import Callable, Sequence
from typing import Final

from gateway.routing.catalog import Target
from gateway.routing.health import Health

Order = Callable[[Sequence[Target], Health], Sequence[Target]]


def priority(targets: Sequence[Target], health: Health) -> Sequence[Target]:
    """As configured: the first that can, serves."""
    return targets


STRATEGIES: Final[dict[str, Order]] = {
    "priority": priority,
}
