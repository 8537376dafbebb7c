"""What is kept of a request? Limits settled, the call closed and handed to the journal, whatever the end was."""
from gateway.core.call import Call
from gateway.core.redact import without
from gateway.pipeline import explaining, guarding, purse
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground
from gateway.policy.limits import Reservation
from gateway.prices import cost
from gateway.tokens.estimate import estimate_request


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
    if call.places and not call.decision:
        call.decision = explaining.brief(call)
    if call.guard is not None:
        guarding.close(call)
    if call.remarks:
        call.decision = explaining.remarked(call)
    calibrate(call, ground)
    charge(call)
    if call.hold is not None:
        purse.settle(call)
    tidy(call, ground.snapshot.secrets)
    ground.journal.add(call)


def tidy(call: Call, secrets: tuple[str, ...]) -> None:
    """An error holds the frames that it came through, and they hold everything of the request, its ground included. Records outlive
    it, and only the collector would find the circle. A provider may also say in it what the prompt was, and a key stand there."""
    for error in (call.error, *[attempt.error for attempt in call.attempts]):
        if error is not None:
            error.__traceback__ = error.__context__ = error.__cause__ = None
            error.message = without(error.message, secrets)


def charge(call: Call) -> None:
    """What each attempt cost at its own target's price, and the request as a whole. A failure that told no counts cost
    nothing; an answer that told none has an unknown cost."""
    total: float | None = 0.0
    for attempt in call.attempts:
        if attempt.usage is None:
            attempt.cost_usd = None if attempt.committed else 0.0
        else:
            attempt.cost_usd = cost(attempt.usage, attempt.price)
        total = None if total is None or attempt.cost_usd is None else total + attempt.cost_usd
    call.cost_usd = total


def calibrate(call: Call, ground: Ground) -> None:
    """What the upstream counted tells how far our estimate is off for its model. Pictures say nothing about text."""
    usage, asked = call.usage, call.request
    if usage is not None and asked is not None and not call.retold and not usage.estimated and not asked.images and call.attempts:
        estimated = estimate_request(asked)
        answered = call.answering or call.attempts[-1]
        ground.calibration.learn(answered.model, estimated, usage.input)
        if asked.model != answered.model:
            ground.calibration.learn(asked.model, estimated, usage.input)


def outcome(call: Call) -> str:
    if call.error is None:
        return "ok"
    if call.committed_at:
        return "broken"
    return "failed" if call.attempts else "refused"
