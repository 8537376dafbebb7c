"""What is asked, and of whom? The request parsed, its targets resolved, the rules of its turn: all before the first attempt."""
import asyncio
from typing import Any

import msgspec

from gateway.core.call import Call
from gateway.core.errors import GatewayError, bad_request
from gateway.core.request import Request
from gateway.pipeline import chores, volume
from gateway.pipeline.asking import tags_of
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground
from gateway.policy.access import restrict
from gateway.policy.keys import Principal
from gateway.routing.resolve import Resolution, resolve
from gateway.stream.turn import Rules
from gateway.tokens.estimate import estimate_request
from gateway.upstream import images
from gateway.wire.bounds import crowded, spelled
from gateway.wire.problems import invalid


class Plan(msgspec.Struct, frozen=True):
    """What the attempts share."""
    request: Request
    resolution: Resolution
    rules: Rules
    input_tokens: int
    tags: frozenset[str] = frozenset()           # that places and accounts may carry, and whether all are wanted
    tags_all: bool = False
    previous: str = ""                           # the model that the session heard last (handoff.py)
    told: Request | None = None                  # what upstreams are told in place of the request
    brief: Any = None                            # fusion.brief.Brief, where several answer and a judge makes one of it


def parse(call: Call, client: Client, body: bytes) -> Request:
    """Raises bad_request naming the field, unsupported_media_type for a body that is no JSON by its own account."""
    kind = client.headers.get("Content-Type")
    if kind is not None and kind.partition(";")[0].strip().lower() in FORM_TYPES:
        raise GatewayError("unsupported_media_type", f"Send the body as application/json, not {kind[:60]!r}.",
                           param="content-type")
    if not spelled(body):
        raise bad_request("Invalid request: the body is not UTF-8.")
    if wrong := crowded(body):
        path, what = wrong
        raise invalid(path, what) if path else bad_request(f"Invalid request: {what}.")
    request = client.wire.parse_request(body, call.operation, call.path_model, call.path_stream)
    call.request = request
    call.stream = request.stream
    return request


async def smaller(call: Call, client: Client, request: Request, max_side: int) -> Request:
    """The request with its pictures scaled down (images.max_side); the very same where none is too large."""
    made = await asyncio.to_thread(images.shrunk, request.raw, max_side)
    return request if made is None else parse(call, client, made)


FORM_TYPES = {"multipart/form-data", "application/x-www-form-urlencoded"}


def plan(call: Call, request: Request, principal: Principal, ground: Ground) -> Plan:
    """Raises no_model when nobody serves what was asked, forbidden when the key may use none of those."""
    resolution = resolve(request.model, ground.catalog)
    targets = restrict(principal, resolution.requested, resolution.kind, resolution.targets)
    if len(targets) != len(resolution.targets):
        resolution = resolution.only(targets)
    if ground.chores:
        resolution = chores.cheaper(request, resolution, principal, ground)
    if resolution.several and ground.snapshot.routing.volume == "adaptive":
        resolution = volume.overridden(resolution, request, ground.inflight.count)
    found = planned(request, resolution, ground)
    if not resolution.tagged:
        return found
    tags, all_of = tags_of(request)
    return msgspec.structs.replace(found, tags=tags, tags_all=all_of) if tags else found


def replanned(plan: Plan, request: Request, ground: Ground) -> Plan:
    """The plan for the same request, told otherwise."""
    return msgspec.structs.replace(planned(request, plan.resolution, ground), tags=plan.tags, tags_all=plan.tags_all)


def planned(request: Request, resolution: Resolution, ground: Ground) -> Plan:
    """What follows from the request and its targets."""
    settings = ground.snapshot.stream
    input_tokens = estimate_request(request, ground.calibration.factor(request.model))
    rules = Rules(tools=request.tools, format=request.format, tool_calls=settings.tool_calls,
                  reasoning=settings.reasoning, rescue=settings.rescue, rescue_scan=settings.rescue_scan,
                  hold_max_bytes=settings.hold_max_bytes, hold_max_s=settings.hold_max_s, n=request.n,
                  stream=request.stream, prompt_tokens=input_tokens)
    return Plan(request, resolution, rules, input_tokens)
