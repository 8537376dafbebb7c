"""Which guards are on? [guardrails], compiled once for a configuration."""
import msgspec

from gateway.config.schema import Guardrails, WebhookGuard
from gateway.policy.guardrails import injection, pii, secrets
from gateway.policy.guardrails.find import Kind


class Guards(msgspec.Struct, frozen=True):
    """[guardrails], compiled."""
    settings: Guardrails
    watch: injection.Watch | None
    hook: WebhookGuard | None

    def kinds(self, off: frozenset[str]) -> tuple[tuple[Kind, ...], tuple[Kind, ...], list[str]]:
        """What is looked for in requests and in answers, and which of it is put back."""
        held, data = self.settings.secrets, self.settings.pii
        private = tuple(pii.KINDS[name] for name in pii.KINDS if name in data.kinds) if "pii" not in off else ()
        keys = secrets.KINDS if held.action != "off" and "secrets" not in off else ()
        asked = private if data.requests != "off" else ()
        restores = [kind.name for kind in keys if held.restore] + [kind.name for kind in asked if data.restore]
        return (*keys, *asked), private if data.answers == "mask" else (), restores


def compiled(settings: Guardrails) -> Guards | None:
    """None: all of them are off."""
    data, held, attacks, hook = settings.pii, settings.secrets, settings.injection, settings.webhook
    watch = injection.Watch(attacks.severity, attacks.patterns) if attacks.action != "off" else None
    judge = hook if hook.url.reveal() else None
    if data.requests == data.answers == held.action == "off" and watch is None and judge is None:
        return None
    return Guards(settings, watch, judge)
