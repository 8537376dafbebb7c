"""Finished requests, as the journals hear of them, and a page of metrics, as Prometheus reads it."""
import re

from prometheus_client.parser import text_string_to_metric_families

from gateway.core.call import Attempt, Call
from gateway.core.errors import GatewayError
from gateway.core.events import Usage
from gateway.core.request import Request
from gateway.observe.families import FAMILIES


def read(page):
    """{(name, labels in their family's order…): value}."""
    found = {}
    for sample in (s for family in text_string_to_metric_families(page) for s in family.samples):
        family = FAMILIES.get(sample.name) or FAMILIES[re.sub("_(bucket|count|sum)$", "", sample.name)]
        labels = [*family.labels, "le"] if sample.name.endswith("_bucket") else family.labels
        found[(sample.name, *(sample.labels[name] for name in labels))] = sample.value
    return found


def attempt(provider="a", model="m", *, start=10.0, end=11.0, error="", committed=None, **more):
    failure = GatewayError(error, "it said no") if error else None
    return Attempt(label=f"{provider}/{model}", provider=provider, model=model, key=1, started=start, ended=end, error=failure,
                   committed=not error if committed is None else committed, **more)


def call(*attempts, outcome="ok", error="", asked="m", took=1.0, **more):
    failure = GatewayError(error, "it said no") if error else None
    usage = more.pop("usage", Usage(input=100, output=20, cached=30, cache_write=10, reasoning=5) if outcome == "ok" else None)
    return Call(id="req_1", surface=more.pop("surface", "chat"), wire="openai-chat", operation="chat", started=10.0, wall=1_000.0,
                ended=10.0 + took, outcome=outcome, error=failure, attempts=list(attempts), usage=usage,
                request=Request(wire="openai-chat", raw=b"", body=None, model=asked, stream=False), **more)
