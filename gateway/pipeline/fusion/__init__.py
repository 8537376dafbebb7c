"""How do several models answer one request? Each by itself, as any request is answered; then one of them, or a judge, for all.

    brief     who sits in the panel, who judges, how long is waited
    panel     everybody at work, until enough have answered           seat: one of them
    verdict   calls that most agree on, a judge's synthesis, or the best answer, in the client's own format

The client's call ends with every attempt of everybody, what they took together, and what the last word was.
"""
import msgspec

from gateway.core.call import Call
from gateway.core.errors import GatewayError
from gateway.pipeline.deliver import Client
from gateway.pipeline.fusion import verdict
from gateway.pipeline.fusion.brief import Brief
from gateway.pipeline.fusion.brief import briefed as briefed
from gateway.pipeline.fusion.panel import Panel
from gateway.pipeline.ground import Ground
from gateway.pipeline.prepare import Plan


async def run(call: Call, plan: Plan, client: Client, ground: Ground) -> None:
    """Deliver one answer of many, or raise the GatewayError that ends the request."""
    panel = Panel(call, plan, members(plan), client, ground)
    try:
        await panel.gather()
        await verdict.told(panel)
    finally:
        await panel.end(GatewayError("client_gone", "ended before its turn was whole"))
        closed(panel)


def members(plan: Plan) -> Plan:
    """What is alike for all members: they answer whole, and share one reading of the dialogue."""
    return msgspec.structs.replace(plan, request=msgspec.structs.replace(plan.request, stream=False), brief=None, previous="",
                                   rules=msgspec.structs.replace(plan.rules, stream=False))


def closed(panel: Panel) -> None:
    """What the parts know goes onto the client's call, whatever the end was."""
    call, brief = panel.call, panel.brief
    assert isinstance(brief, Brief)
    call.attempts = panel.attempts
    call.strategy, call.places, call.decision = "fusion", len(brief.members), panel.title()
    call.retold = True                               # its counts are of several prompts: they teach nothing about one
    last = next((part for part in (panel.judge, *(seat.call for seat in panel.seats)) if part is not None and part.panel is not None
                 and part.committed_at and panel.client.committed), None)
    if last is not None:
        answered = next((attempt for attempt in reversed(last.attempts) if attempt.committed), None)
        call.routed, call.finish, call.committed_at = panel.via(answered), last.finish, last.committed_at
        call.session = call.session or last.session
        call.first_token_at, call.error = last.first_token_at, call.error or last.error
    call.usage = panel.usage()
