"""What is different where Google hosts the Messages API? The model stands in the path, the version in the body.

https://docs.anthropic.com/en/api/claude-on-vertex-ai
"""
from typing import Final
from urllib.parse import quote

import msgspec

from gateway.wire import splice
from gateway.wire.base import Outbound

VERTEX: Final = "vertex"                     # the flag of such a target
_VERSION: Final = b'"vertex-2023-10-16"'


def path(to: Outbound) -> str:
    return f"/models/{quote(to.model, safe='@')}:{'streamRawPredict' if to.stream else 'rawPredict'}"


def body(raw: bytes) -> bytes:
    """The body of the API itself, as it is taken there."""
    top: dict[str, bytes | msgspec.Raw] = {name: value for name, value in splice.fields(raw).items() if name != "model"}
    top["anthropic_version"] = _VERSION
    return splice.join(top)
