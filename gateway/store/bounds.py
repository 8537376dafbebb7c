"""How much of everything is kept? The limits that both stores share."""
from typing import Final

import msgspec

DAY_S: Final = 86_400


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """Of stored responses. What is over a limit goes, oldest first. OpenAI keeps them for 30 days:
    https://platform.openai.com/docs/guides/conversation-state"""
    ttl_s: float = 30 * DAY_S
    max_count: int = 100_000
    max_bytes: int = 2 << 30


ON_DISK: Final = Bounds()
IN_MEMORY: Final = Bounds(max_count=10_000, max_bytes=256 << 20)
UNWRITTEN: Final = Bounds(max_count=10_000, max_bytes=64 << 20)      # held until a batch is on the disk

MAX_CHANGES: Final = 10_000                      # of the audit log
