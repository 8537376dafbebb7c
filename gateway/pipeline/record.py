"""What is kept of a request? Limits settled, the call closed and handed to the journal, whatever the end was."""
from gateway.core.call import Call
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground
from gateway.policy.limits import Reservation


def close(call: Call, client: Client, reservation: Reservation | None, ground: Ground) -> None:
    """Synchronous and never fails a request."""
    client.close()
    call.ended = ground.clock.now()
    call.bytes_out = client.written
    if not call.outcome:
        call.outcome = outcome(call)
    if reservation is not None:
        if call.usage is not None:
            reservation.settle(call.usage.input + call.usage.output, call.ended)
        elif call.attempts:
            reservation.release(call.ended)
        else:
            reservation.settle(0, call.ended)
    ground.journal.add(call)


def outcome(call: Call) -> str:
    if call.error is None:
        return "ok"
    if call.committed_at:
        return "broken"
    return "failed" if call.attempts else "refused"
