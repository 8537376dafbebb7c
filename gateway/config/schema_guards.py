"""What may be written about what goes into a request and what comes back? The tables of the context, of thinking and of the guards."""
from typing import Annotated, Literal

from msgspec import Meta

from gateway.config.tables import Count, Table, doc
from gateway.core.secret import Secret

Guard = Literal["pii", "secrets", "injection", "webhook"]
Kind = Literal["email", "phone", "credit_card", "iban", "ssn", "ip"]
Effort = Literal["", "none", "minimal", "low", "medium", "high", "xhigh", "max"]
Severity = Literal["low", "medium", "high"]


class Context(Table, frozen=True):
    """Dialogues that are larger than the window of every model that could answer."""
    overflow: Annotated[Literal["refuse", "trim"], doc("`refuse`: 413; `trim`: long tool results are shortened, old thinking and the "
                                                       "oldest turns left out, with a mark, until it fits.")] = "refuse"


class Thinking(Table, frozen=True):
    """How much thinking clients may ask for."""
    mode: Annotated[Literal["pass", "cap", "off"], doc("`cap`: no more than the next two; `off`: none, as far as models "
                                                              "can be told.")] = "pass"
    max_tokens: Annotated[Count, doc("Largest budget; 0 = any.")] = 0
    max_effort: Annotated[Effort, doc("Highest effort; empty = any.")] = ""


class Pii(Table, frozen=True):
    """Personal data."""
    requests: Annotated[Literal["off", "mask", "block"], doc("`mask`: upstreams see `[EMAIL_1]` and the like; `block`: 400.")] = "off"
    answers: Annotated[Literal["off", "mask"], doc("`mask`: what models say of other people is masked too.")] = "off"
    kinds: Annotated[tuple[Kind, ...], doc("What is looked for; card numbers and IBANs by their check digits.")] = (
        "email", "phone", "credit_card", "iban", "ssn", "ip")
    restore: Annotated[bool, doc("The caller's own values stand in its answers again, in arguments of tools too.")] = True


class Secrets(Table, frozen=True):
    """Credentials in requests: API keys, tokens, private keys."""
    action: Annotated[Literal["off", "mask", "block"], doc("`mask`: upstreams see `[API_KEY_1]`; `block`: 400.")] = "off"
    restore: Annotated[bool, doc("They stand in answers again, in arguments of tools too.")] = True


class Injection(Table, frozen=True):
    """Words in results of tools and of users by which a model is to be turned against its instructions. Heuristics."""
    action: Annotated[Literal["off", "warn", "block"], doc("`warn`: in the log and the record; `block`: 400.")] = "off"
    severity: Annotated[Severity, doc("The least that counts.")] = "medium"
    users: Annotated[bool, doc("Look at what users say, not at results of tools alone.")] = True
    patterns: Annotated[tuple[str, ...], doc("Regular expressions of your own, each of them severe.")] = ()


class WebhookGuard(Table, frozen=True):
    """An address that judges each request: it gets JSON and answers with a verdict."""
    url: Annotated[Secret, doc("Where it is; empty = off.")] = Secret("")
    secret: Annotated[Secret, doc("Signs what is posted, as for [[webhooks]].")] = Secret("")
    timeout_s: Annotated[float, Meta(gt=0, le=60), doc("Time for a verdict.")] = 5
    on_failure: Annotated[Literal["allow", "block"], doc("What happens without one.")] = "allow"
    allow_private: Annotated[bool, doc("The address may be one of this machine or a private network.")] = False


class Guardrails(Table, frozen=True):
    """Guards over what is asked and answered; all of them off."""
    pii: Annotated[Pii, doc("Personal data.")] = Pii()
    secrets: Annotated[Secrets, doc("Credentials in requests.")] = Secrets()
    injection: Annotated[Injection, doc("Attempts to turn a model around.")] = Injection()
    webhook: Annotated[WebhookGuard, doc("A judge of your own.")] = WebhookGuard()
