"""What does a request say once the operator has had a word? Other instructions, fewer tools, less thinking, no tags of routing.

A combo has its own instructions and tools, a client key instructions and a limit for thinking; [thinking] is for everybody.

The client's own request stays as it is: what is kept of it, for records and for responses, is what the client said.
"""
import msgspec

from gateway.config.schema import Thinking
from gateway.core.call import Call
from gateway.core.request import Request
from gateway.pipeline.aside import LARGE_BYTES, aside
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground
from gateway.pipeline.prepare import Plan, replanned
from gateway.policy.keys import Manner
from gateway.routing.combos import Shape
from gateway.wire import amend
from gateway.wire.base import Wire
from gateway.wire.effort import Ceiling

MAX_NAME = 512                                   # characters of a tool's name that a filter looks at


class Changes(msgspec.Struct, frozen=True):
    """What one request is told otherwise."""
    shape: Shape | None = None
    tagged: bool = False
    instructions: str = ""
    thinking: Ceiling | None = None


def needed(plan: Plan, manner: Manner, thinking: Thinking) -> bool:
    combo = plan.resolution.combo
    return bool(plan.tags) or thinking.mode != "pass" or manner.tells or (combo is not None and combo.shape is not None)


async def retold(call: Call, plan: Plan, client: Client, ground: Ground, manner: Manner) -> Plan:
    """The plan with the request as it will be sent."""
    combo, request = plan.resolution.combo, plan.request
    changes = Changes(combo.shape if combo is not None else None, bool(plan.tags), manner.instructions,
                      ceiling(manner, ground.snapshot.thinking))
    large = len(request.raw) > LARGE_BYTES
    made = await aside(told, request, client.wire, changes) if large else told(request, client.wire, changes)
    if made is request:
        return plan
    call.retold = True
    return replanned(plan, made, ground)


def ceiling(manner: Manner, thinking: Thinking) -> Ceiling | None:
    """The key's own word, else everybody's; None = as the client asks."""
    mode, tokens, effort = manner.thinking, manner.thinking_max_tokens, manner.thinking_max_effort
    if not mode:
        mode, tokens, effort = thinking.mode, thinking.max_tokens, thinking.max_effort
    return None if mode == "pass" else Ceiling(tokens, effort, off=mode == "off")


def told(request: Request, wire: Wire, changes: Changes) -> Request:
    shape = changes.shape
    if changes.tagged:
        request = amend.without_tags(request, wire)
    if shape is not None and (keeps := shape.keeps) is not None and request.tools:
        request = amend.with_tools(request, wire, lambda name: keeps.search(name[:MAX_NAME]) is not None)
    if shape is not None and shape.system_message:
        request = amend.instructed(request, wire, shape.system_message, replace=True)
    if changes.instructions:
        request = amend.instructed(request, wire, changes.instructions, replace=False)
    if changes.thinking is not None:
        request = amend.with_thinking(request, wire, changes.thinking)
    return request
