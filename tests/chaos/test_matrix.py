"""Every surface, every fault, as a stream and not: what README.md promises, row by row."""
import asyncio
import re

import pytest

from gateway.mock import script as say
from tests.arch.source import ROOT
from tests.conftest import client_key, provider
from tests.surfaces import OPEN_ALL, SURFACES

HEALTHY = "from b"
EMPTY = say.stream()


def answer_of(stream, whole):
    """An upstream that was asked for a stream gets the first, else the second."""
    return lambda asked: stream if asked.json().get("stream") else whole


FAILED = say.frame(error={"message": "it broke", "type": "server_error"}, choices=[])

# What goes wrong before the first payload -> the statuses with which it may be told when nobody else is there.
BEFORE = {
    "refuses the connection": (None, {502}),
    "resets before the headers": (say.reset_before_headers(), {502}),
    "closes before the headers": (say.close_before_headers(), {502}),
    "resets after the headers": (say.reset_after_headers(), {502}),
    "says nothing": (say.hang(), {504}),
    "drips its headers": (say.slow_loris(), {504}),
    "speaks no HTTP": (say.garbage(), {502}),
    "falls silent": (answer_of(say.stall(), say.script(say.Head(200, say.JSON, 500), say.Hang())), {504}),
    "ends in a frame": (answer_of(say.half_frame(), say.cut_length()), {502}),
    "ends without its last chunk": (answer_of(say.cut_chunked(), say.cut_length()), {502}),
    "says 200 with a page": (say.html(200), {502}),
    "says 502 with a page": (say.html(502), {502}),
    "says 200 with an error": (say.error(200, "it broke"), {502}),
    "says 401": (say.error(401, "Incorrect API key provided"), {502}),
    "says 402": (say.error(402, "Insufficient credits"), {429, 502}),
    "says 404": (say.error(404, "The model does not exist", code="model_not_found"), {404}),
    "says 429": (say.error(429, "slow down", headers={"Retry-After": "7"}), {429}),
    "says 500": (say.error(500, "it broke"), {502}),
    "says 503": (say.error(503, "overloaded"), {503}),
    "says an error in its stream": (answer_of(say.script(say.Head(200, say.SSE), say.Send(FAILED)), say.error(200, "it broke")), {502}),
    "answers with nothing": (answer_of(EMPTY, say.reply("")), {502}),
    "answers with an empty body": (say.body_of(b""), {502}),
    "answers with half a document": (say.body_of(b'{"choices": [{"mess'), {502}),
    "answers with something else": (say.body_of(b'[1, {"a": null}]'), {502}),
}
# What goes wrong after it, in a stream.
AFTER = {
    "resets": (say.Reset(),),
    "closes": (say.Close(),),
    "falls silent": (say.Hang(),),
    "says an error": (say.Send(FAILED),),
    "ends in a frame": (say.Send(say.frame("never seen whole")[:-20]), say.Close()),
    "ends without a reason": (say.End(),),
    "sends garbage": (say.Send(b"data: {]\n\n" * 40), say.Close()),
    "breaks the framing": (say.Raw(b"zz\r\n"), say.Close()),
}
BEGUN = ("it ", "begins ")


def slug(fault):
    return fault.replace(" ", "-").lower()


def config(addresses, healthy):
    """One provider for each fault, and a combo of the same name of it and the one that is well."""
    tables = [provider(healthy, "b")]
    for name, address in addresses.items():
        tables.append(provider(address, slug(name), timeouts="{first_byte_s = 0.5, first_token_s = 0.5, idle_s = 0.5}"))
        tables.append(f'[[combos]]\nname = "{slug(name)}"\ntargets = ["{slug(name)}/m", "b/m"]\n')
    return client_key() + "".join(tables) + OPEN_ALL


@pytest.fixture
async def house(gateway, upstream):
    """``await house({name: script})``: a gateway before one upstream for each; None: nobody listens there."""
    async def start(faults):
        healthy = await upstream(answer_of(say.stream("from ", "b"), say.reply(HEALTHY)))
        ups = {name: "http://127.0.0.1:1/v1" if fault is None else await upstream(fault) for name, fault in faults.items()}
        return await gateway(config(ups, healthy))
    return start


async def asked(surface, base_url, names, stream, alone):
    """{fault: (what came, what it says)}"""
    async def one(name):
        got = await surface.ask(base_url, slug(name) + "/m" if alone else slug(name), stream)
        return name, (got, surface.said(got, stream))
    return dict(await asyncio.gather(*map(one, names)))


WELL = (200, HEALTHY, True, "", "", "b/m")


def seen(got, said):
    return got.status, said.text, said.ended, said.error, got.broken, got.headers.get("X-Routed-Via")


ways = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
surfaces = pytest.mark.parametrize("surface", SURFACES.values(), ids=SURFACES.keys())


@ways
@surfaces
async def test_a_fault_before_the_first_payload(house, surface, stream):
    base_url = await house({name: fault for name, (fault, _) in BEFORE.items()})
    helped = await asked(surface, base_url, BEFORE, stream, alone=False)
    assert {name: seen(*one) for name, one in helped.items()} == dict.fromkeys(BEFORE, WELL), "another one answers"
    base_url = await house({name: fault for name, (fault, _) in BEFORE.items()})
    for name, (got, said) in (await asked(surface, base_url, BEFORE, stream, alone=True)).items():
        assert got.status in BEFORE[name][1] and said.error and not said.text and not said.ended, f"{name}: it is told"
        assert ("Retry-After" in got.headers) == (got.status in (429, 503)), name


@ways
@surfaces
async def test_a_fault_after_the_first_payload(house, surface, stream):
    base_url = await house({name: say.stream(*BEGUN).but(*steps, after=len(BEGUN) + 1) for name, steps in AFTER.items()})
    for name, (got, said) in (await asked(surface, base_url, AFTER, stream, alone=False)).items():
        if stream:
            assert (got.status, said.text, got.broken) == (200, "".join(BEGUN), ""), f"{name}: nothing is repeated or lost"
            assert said.error and not said.ended, f"{name}: no clean-looking end"
        else:
            assert seen(got, said) == WELL, f"{name}: nothing had left, another one answers"


def test_the_readme_promises_what_is_tested_here():
    text = re.sub(r"\s+", " ", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert f"{len(SURFACES)} surfaces, {len(BEFORE) + len(AFTER)} faults" in text
