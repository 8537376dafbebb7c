"""Which guards look at a request, and what becomes of its answer? Credentials and personal data are masked or refused, attempts to
turn the model around noted or refused, a judge outside is asked (policy/guardrails). All of it off is one comparison.

What a guard did is told in the record (``call.remarks``); what it hid is known to this request alone (``call.guard``).
"""
import logging
import time
from collections.abc import Callable
from typing import Final

import msgspec

from gateway.compress import wires
from gateway.compress.segment import Segment
from gateway.config.schema import Guardrails, WebhookGuard
from gateway.core.call import Call, Remark
from gateway.core.errors import GatewayError
from gateway.core.request import Request
from gateway.core.signing import signed
from gateway.pipeline.aside import alone
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground
from gateway.pipeline.guards import Guards
from gateway.pipeline.prepare import Plan, replanned
from gateway.pipeline.shrink import reparsed
from gateway.policy.guardrails import injection, pii, secrets, verdict
from gateway.policy.guardrails.leaves import Leaf, leaves, pointer
from gateway.policy.guardrails.masks import Masks
from gateway.policy.keys import Principal
from gateway.stream.blind import Blind, Veiled
from gateway.stream.veil import Veil
from gateway.wire.lenient import load

log = logging.getLogger("gateway.guards")

LARGE_BYTES: Final = 32_768                      # more is looked at off the loop
Parse = Callable[[Call, Client, bytes], Request]


class Look(msgspec.Struct):
    """What the guards found in one body."""
    leaves: list[Leaf]
    changed: list[Leaf] = []
    masks: Masks | None = None
    attack: tuple[injection.Finding, int] | None = None


# ---------------------------------------------------------------- the request
async def guarded(call: Call, plan: Plan, principal: Principal, client: Client, ground: Ground, parse: Parse | None) -> Plan:
    """The plan with the request as upstreams may see it. ``parse``: of operations that are no turns. Raises 400 for what is refused,
    503 where a verdict is missing that must be there."""
    guards, combo, request = ground.guards, plan.resolution.combo, plan.request
    assert guards is not None
    off = principal.manner.guards_off
    if combo is not None and combo.shape is not None:
        off = off | combo.shape.guards_off
    large = len(request.raw) > LARGE_BYTES
    try:
        look = await alone(looked, request.raw, guards, off) if large else looked(request.raw, guards, off)
    except ValueError:
        return plan                                  # a form: what is in it is no text
    masks = look.masks
    if masks is not None:
        hidden(call, masks, guards.settings)
        if masks.active:
            call.guard = masks
    if look.attack is not None:
        attacked(call, look.attack, guards.settings.injection.action)
    changed = look.changed
    if guards.hook is not None and "webhook" not in off:
        changed = [*changed, *await asked(call, look, principal, guards.hook, ground)]
    if not changed:
        return plan
    call.retold = True
    raw = written(request.raw, changed)
    if parse is None:
        return replanned(plan, reparsed(call, request, raw), ground)
    said, made = call.request, parse(call, client, raw)
    call.request = said                              # the record holds what the client said
    return msgspec.structs.replace(plan, request=made)


def looked(raw: bytes, guards: Guards, off: frozenset[str]) -> Look:
    """Raises ValueError for what is no JSON."""
    doc, _ = load(raw)
    look = Look(list(leaves(doc)))
    sought, answers, restores = guards.kinds(off)
    if sought or answers:
        masks = look.masks = Masks(sought, answers, restores)
        masks.reserve(leaf.text for leaf in look.leaves)
        told = [msgspec.structs.replace(leaf, text=masks.mask_json(leaf.text) if leaf.json else masks.mask(leaf.text))
                for leaf in look.leaves] if sought else look.leaves
        look.changed = [made for made, leaf in zip(told, look.leaves, strict=True) if made.text != leaf.text]
        look.leaves = told
    if guards.watch is not None and "injection" not in off:
        users = guards.settings.injection.users
        look.attack = guards.watch.found(leaf.text for leaf in look.leaves if leaf.role == "tool" or users and leaf.role == "user")
    return look


def written(raw: bytes, changed: list[Leaf]) -> bytes:
    """The body with these texts, every other value byte for byte."""
    return wires.write(raw, [Segment(leaf.path, 0, leaf.role, leaf.text) for leaf in changed])


# ---------------------------------------------------------------- what follows
_PII: Final = {kind.name: kind.words for kind in pii.KINDS.values()}
_SECRETS: Final = {kind.name: kind.words for kind in secrets.KINDS}


def hidden(call: Call, masks: Masks, settings: Guardrails) -> None:
    """Raises 400 where a guard refuses what it found."""
    for guard, words, action in (("secrets", _SECRETS, settings.secrets.action), ("pii", _PII, settings.pii.requests)):
        found = {name: n for name, n in masks.n.items() if name in words}
        if found:
            done = "blocked" if action == "block" else "masked"
            call.remarks += (Remark(guard, done, sum(found.values()), counted(found)),)
            if action == "block":
                raise refusal(guard, f"it holds {', '.join(words[name] for name in found)}")


def attacked(call: Call, attack: tuple[injection.Finding, int], action: str) -> None:
    finding, n = attack
    call.remarks += (Remark("injection", "blocked" if action == "block" else "warned", n, f"{finding.name}, {finding.severity}"),)
    log.warning("request %s: a text looks like an attempt to turn the model around (%s, %s)", call.id, finding.name, finding.severity)
    if action == "block":
        raise refusal("injection", "a text of it looks like an attempt to override instructions")


def refusal(guard: str, why: str, status: int | None = None) -> GatewayError:
    return GatewayError("bad_request", f"The guard {guard!r} refuses this request: {why}.", code=f"guard_{guard}", status=status)


async def asked(call: Call, look: Look, principal: Principal, hook: WebhookGuard, ground: Ground) -> list[Leaf]:
    """What the judge outside wants changed."""
    model = call.request.model if call.request is not None else ""
    body = verdict.question(call.id, call.surface, model, principal.name, look.leaves)
    headers = {"Content-Type": "application/json", "X-Gateway-Event": "guard.request", "X-Gateway-Delivery": call.id}
    if secret := hook.secret.reveal():
        stamp = int(time.time())
        headers |= {"X-Gateway-Timestamp": str(stamp), "X-Gateway-Signature": signed(secret, stamp, body)}
    try:
        status, answer = await ground.extras.poster.ask(hook.url.reveal(), body, headers, private=hook.allow_private,
                                                        timeout_s=hook.timeout_s, limit=verdict.MAX_ANSWER)
        if status != 200:
            raise ValueError(f"it answered {status}")
        found = verdict.verdict(answer, len(look.leaves))
    except (GatewayError, ValueError, msgspec.DecodeError) as error:
        log.warning("request %s: the guard's webhook gave no verdict: %s", call.id, error)
        call.remarks += (Remark("webhook", "failed"),)
        if hook.on_failure == "block":
            raise GatewayError("shed", "The guard 'webhook' gave no verdict, and nothing is sent without one.", code="guard_webhook",
                               retry_after_s=1.0) from None
        return []
    if found.verdict == "block":
        call.remarks += (Remark("webhook", "blocked"),)
        raise refusal("webhook", found.message[:verdict.MAX_MESSAGE].rstrip(". ") or "it was judged so")
    texts = found.texts if found.verdict == "replace" else ()
    replaced = [msgspec.structs.replace(look.leaves[one.index], text=one.text) for one in texts]
    if replaced:
        call.remarks += (Remark("webhook", "replaced", len(replaced), ", ".join(pointer(leaf.path) for leaf in replaced[:5])),)
    return replaced


# ---------------------------------------------------------------- the answer
def veiled(secrets: tuple[str, ...], call: Call) -> Veil | Blind | Veiled | None:
    """What an answer goes through: the account's key hidden (and what else it was sent), the guards' work undone or done."""
    cover: Veil | Blind | Veiled | None = None if call.guard is None else Blind(call.guard)
    for secret in reversed(secrets):
        veil = Veil(secret)
        cover = veil if cover is None else Veiled(veil, cover)
    return cover


def told(call: Call, text: str) -> str:
    """What the client was told, as upstreams may see it."""
    return text if call.guard is None else str(call.guard.hidden(text))


def close(call: Call) -> None:
    """What was hidden in the answer goes onto the record."""
    if call.guard.said:
        call.remarks += (Remark("pii", "masked in answer", sum(call.guard.said.values()), counted(call.guard.said)),)


def counted(found: dict[str, int]) -> str:
    return ", ".join(f"{n} {name.lower()}" for name, n in sorted(found.items()))
