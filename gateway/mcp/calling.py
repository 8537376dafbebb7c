"""How is a tool called, whoever carries the words? Scope, inputs, time, size and secrets are checked here, and the call is noted.

A caller's scopes come from its key and from nowhere else; a tool is done only where the caller holds all that it names. What goes
wrong is told in words, so that a model can do better; what the gateway got wrong itself stays in its log.
"""
import asyncio
import hashlib
import logging
import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gateway.admin.errand import Errand
from gateway.admin.office import Office
from gateway.admin.visit import refused
from gateway.config.problems import ConfigError
from gateway.core.errors import GatewayError, bad_request
from gateway.core.ids import request_id
from gateway.core.redact import Scrubber, mask_body
from gateway.mcp.callers import Caller
from gateway.mcp.fitting import fitted
from gateway.mcp.table import BY_NAME, TOOLS
from gateway.mcp.tool import Needs, Tool

log = logging.getLogger("gateway.mcp")

AT_ONCE: Final = 32
LONGEST_S: Final = 120.0
ERROR_CHARS: Final = 4_000
LARGE_BYTES: Final = 8_192                       # longer answers are masked off the loop
RUNNING: Final[tuple[Needs, ...]] = ("config", "store", "gateway")


class Told(msgspec.Struct, frozen=True):
    """What came of a call."""
    text: str
    failed: bool = False


class Unknown(Exception):
    """There is no such tool, for nobody."""


class Toolbox:
    """The tools over one office. ``has``: what there is to work on (``Tool.needs``)."""

    def __init__(self, office: Office, has: tuple[Needs, ...] = RUNNING) -> None:
        self.office = office
        self.has = has
        self.running = 0

    def offered(self, caller: Caller) -> list[Tool]:
        """The tools that this caller may use here."""
        return [tool for tool in TOOLS if tool.needs in self.has and caller.scopes.issuperset(tool.scopes)]

    async def call(self, name: str, given: Mapping[str, Any], caller: Caller) -> Told:
        """Raises Unknown, and nothing else but cancellation."""
        tool = BY_NAME.get(name)
        if tool is None:
            raise Unknown(name)
        began, outcome = time.monotonic(), "cancelled"
        self.running += 1
        try:
            told = Told(await self._done(tool, given, caller))
            outcome = "ok"
        except GatewayError as error:
            told, outcome = self._failed(worded(error)), error.code or error.kind
        except ConfigError as error:
            told, outcome = self._failed("\n".join(f"{path}: {message}" if path else message
                                                   for path, message in error.problems)), "bad_request"
        except TimeoutError:
            told, outcome = Told(f"It took longer than {LONGEST_S:g} s and was given up.", failed=True), "timeout"
        except Exception:
            log.exception("the tool %s failed inside the gateway", tool.name)
            told, outcome = Told("The gateway failed on this call; its log has the details.", failed=True), "internal"
        finally:
            self.running -= 1
            self.office.note(caller.name, f"mcp.{tool.name}", digest(given),
                             f"{outcome}; {(time.monotonic() - began) * 1000:.1f} ms", ok=outcome == "ok")
        return told

    async def _done(self, tool: Tool, given: Mapping[str, Any], caller: Caller) -> str:
        if missing := [scope for scope in tool.scopes if scope not in caller.scopes]:
            raise GatewayError("forbidden", f"{tool.name} needs {' and '.join(missing)}, which your key does not hold.",
                               code="insufficient_scope")
        if tool.needs not in self.has:
            raise GatewayError("not_found", f"{tool.name} needs a {'gateway that runs' if tool.needs == 'gateway' else 'store'}; "
                               "start one with `gateway serve`.", code="not_running")
        if self.running > AT_ONCE:
            raise GatewayError("shed", f"{AT_ONCE} tools run already; try again.", retry_after_s=1.0)
        try:
            asked = msgspec.convert(given, tool.asks, strict=False)
        except msgspec.ValidationError as error:
            raise refused(error) from None
        except RecursionError:
            raise bad_request("The inputs are nested too deeply.") from None
        errand = Errand(self.office, caller.name, request_id(), principal=caller.principal, scopes=caller.scopes)
        async with asyncio.timeout(LONGEST_S):
            value = await tool.run(errand, asked)
            return str(await self._written(value, tool.secret))

    async def _written(self, value: Any, secret: bool) -> str:
        secrets = self.office.ground.snapshot.secrets
        plain = msgspec.json.encode(msgspec.to_builtins(value))
        if len(plain) > LARGE_BYTES:
            return str(await self.office.aside(written, plain, secrets, secret))
        return written(plain, secrets, secret)

    def _failed(self, text: str) -> Told:
        hidden = mask_body(text.encode(), self.office.ground.snapshot.secrets)
        return Told(hidden.decode("utf-8", "replace")[:ERROR_CHARS], failed=True)


def written(plain: bytes, secrets: tuple[str, ...], secret: bool) -> str:
    """JSON of a bounded length without what nobody may see. ``secret``: it holds a key that is meant for the caller."""
    data = fitted(plain)
    hidden = Scrubber(secrets).replace(data) if secret else mask_body(data, secrets)
    return hidden.decode("utf-8", "replace")


def worded(error: GatewayError) -> str:
    """A failure for a reader."""
    where = f"{error.param}: " if error.param and not error.message.startswith(error.param) else ""
    wait = f" Try again in {error.retry_after_s:.0f} s." if error.retry_after_s else ""
    return f"{where}{error.message}{wait}"


def digest(given: Mapping[str, Any]) -> str:
    """What the audit log keeps of inputs: the same for the same ones, and nothing can be read from it."""
    try:
        plain = msgspec.json.encode(given, order="deterministic")
    except (TypeError, ValueError, RecursionError):
        return "sha256:unreadable"
    told = hashlib.sha256(plain).hexdigest()
    return "sha256:" + "-".join(told[at:at + 16] for at in range(0, 64, 16))     # in groups: as one word it would be masked as a key
