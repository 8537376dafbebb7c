"""Which of several workers is this process? The supervisor (workers.py) says so in one variable of its environment."""
import math
import os
from collections.abc import MutableMapping
from typing import Final

import msgspec

from gateway.config.snapshot import Snapshot

VARIABLE: Final = "GATEWAY_WORKER"


class Post(msgspec.Struct, frozen=True):
    """One worker's place; its sockets are handed over as to any successor (sockets.py)."""
    number: int
    of: int
    hub: str


def mine(env: MutableMapping[str, str] = os.environ) -> Post | None:
    """This process's place; None where it is alone. Nobody that it starts inherits it."""
    told = env.pop(VARIABLE, None)
    return msgspec.json.decode(told, type=Post) if told is not None else None


def share_of(snapshot: Snapshot, post: Post) -> Snapshot:
    """What one of several processes may take in, of what the configuration says for all."""
    limits = snapshot.limits
    if not limits.max_inflight:
        return snapshot
    return msgspec.structs.replace(snapshot, limits=msgspec.structs.replace(
        limits, max_inflight=math.ceil(limits.max_inflight / post.of)))
