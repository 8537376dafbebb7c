"""Scripted panels: each upstream answers as a member, and otherwise when it is asked to judge."""
import json

from gateway.mock import script as say
from tests.conftest import client_key, provider
from tests.unit.pipeline.test_explaining import Kept

ASK = {"model": "fusion", "messages": [{"role": "user", "content": "Why is the sky blue?"}]}
FAST = "[fusion]\ngrace_s = 0.2\n"


def judges(asked):
    return b"<response n=" in asked.body


def told(asked, text, **more):
    """As it was asked: whole or streamed."""
    if asked.json().get("stream"):
        return say.stream(*[text[i:i + 5] for i in range(0, len(text), 5)], **more)
    return say.reply(text, **more)


def member(draft, verdict="The verdict."):
    """Says ``draft`` (a text or a script) in the panel, ``verdict`` (as well) as its judge."""
    def answer(asked):
        said = verdict if judges(asked) else draft
        return told(asked, said) if isinstance(said, str) else said
    return answer


def calling(*calls):
    """A whole answer that calls tools: (name, arguments) each."""
    made = [{"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for n, (name, arguments) in enumerate(calls)]
    return say.reply(None, finish="tool_calls", tool_calls=made)


async def house(gateway, upstream, *answers, more=FAST, names="abcdefgh", key="", clock=None, **settings):
    """Providers a, b, c … with one model each (m-a, m-b …); their upstreams, the address, the finished calls."""
    ups = [await upstream(answer) for answer in answers]
    tables = "".join(provider(up, name, f'["m-{name}"]', keys=f'["sk-{name}-123456"]', **settings)
                     for up, name in zip(ups, names, strict=False))
    base_url = await gateway((key or client_key()) + more + tables, clock)
    kept = gateway.listener.desk.ground.journal = Kept()
    return ups, base_url, kept.calls


def extras(got):
    """What the frames or the body say of the panel."""
    return [frame["_fusion"] for frame in got.frames if "_fusion" in frame] if got.frames else got.json["_fusion"]


def prompt(up, n=-1):
    """The last message that a judge was sent."""
    return json.loads(up.requests[n].body)["messages"][-1]["content"]
