"""What does a request say once its combo has had its word? Other instructions, fewer tools, no tags that only routing reads.

The client's own request stays as it is: what is kept of it, for records and for responses, is what the client said.
"""
import msgspec

from gateway.core.call import Call
from gateway.core.request import Request
from gateway.pipeline.aside import LARGE_BYTES, aside
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground
from gateway.pipeline.prepare import Plan, planned
from gateway.routing.combos import Shape
from gateway.wire import amend
from gateway.wire.base import Wire

MAX_NAME = 512                                   # characters of a tool's name that a filter looks at


def needed(plan: Plan) -> bool:
    combo = plan.resolution.combo
    return bool(plan.tags) or (combo is not None and combo.shape is not None)


async def retold(call: Call, plan: Plan, client: Client, ground: Ground) -> Plan:
    """The plan with the request as it will be sent."""
    combo, request = plan.resolution.combo, plan.request
    shape = combo.shape if combo is not None else None
    large = len(request.raw) > LARGE_BYTES
    made = await aside(told, request, client.wire, shape, bool(plan.tags)) if large \
        else told(request, client.wire, shape, bool(plan.tags))
    if made is request:
        return plan
    call.retold = True
    return msgspec.structs.replace(planned(made, plan.resolution, ground), tags=plan.tags, tags_all=plan.tags_all)


def told(request: Request, wire: Wire, shape: Shape | None, tagged: bool) -> Request:
    if tagged:
        request = amend.without_tags(request, wire)
    if shape is None:
        return request
    if (keeps := shape.keeps) is not None and request.tools:
        request = amend.with_tools(request, wire, lambda name: keeps.search(name[:MAX_NAME]) is not None)
    if shape.system_message:
        request = amend.instructed(request, wire, shape.system_message, replace=True)
    return request
