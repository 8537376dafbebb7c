"""What is known of a request once it is over: R01 cost without double counting, R02 unknown is not nothing, R03 every attempt."""
import asyncio

import aiohttp
import pytest

from gateway.mock import script as say
from gateway.pipeline.captured import BODY_LIMIT
from gateway.store import reading, totals
from tests import postgres
from tests.acceptance.wires import PRICE, SHAPES
from tests.conftest import client_key, provider
from tests.talk import ASK, AUTH, ask


class Heard:
    """A journal that remembers."""

    def __init__(self):
        self.calls = []

    def add(self, call):
        self.calls.append(call)

    async def close(self): ...


def priced(price=PRICE, model="m"):
    return f'[{{id = "{model}", price = {price}}}]'


async def listened(gateway, config):
    base_url, heard = await gateway(config), Heard()
    gateway.listener.parts.journal.journals.append(heard)
    return base_url, heard


def counts(usage):
    return usage.input, usage.output, usage.cached, usage.cache_write, usage.reasoning


# ---------------------------------------------------------------- R01
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
async def test_r01_an_answer_costs_what_one_reckons_by_hand(gateway, upstream, shape, stream):
    answer = say.script(say.Head(200, {"Content-Type": shape.kind}), say.Send(shape.stream)) if stream else say.body_of(shape.whole)
    up = await upstream(answer)
    base_url, heard = await listened(gateway, client_key() + provider(up, models=priced(), wire=f'"{shape.wire}"', auth='"bearer"'))
    got = await ask(base_url, stream=stream)
    assert got.status == 200, got.body
    (call,) = heard.calls
    assert call.outcome == "ok" and counts(call.usage) == shape.counts and not call.estimated
    assert call.cost_usd == pytest.approx(shape.usd) and call.attempts[0].cost_usd == call.cost_usd


async def test_r01_without_a_rate_of_their_own_cached_and_thought_tokens_cost_what_any_do(gateway, upstream):
    shape = SHAPES["chat, OpenAI"]
    up = await upstream(say.body_of(shape.whole))
    base_url, heard = await listened(gateway, client_key() + provider(up, models=priced("{input = 2.0, output = 10.0}")))
    await ask(base_url)
    assert heard.calls[0].cost_usd == pytest.approx(0.007)


async def test_r01_embeddings_cost_their_input(gateway, upstream):
    body = b'{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"model":"e","usage":{"prompt_tokens":8,"total_tokens":8}}'
    up = await upstream(say.body_of(body))
    models = '[{id = "e", kind = "embedding", price = {input = 0.5}}]'
    base_url, heard = await listened(gateway, client_key() + provider(up, models=models))
    assert (await ask(base_url, {"model": "e", "input": "hi"}, path="/v1/embeddings")).status == 200
    assert heard.calls[0].cost_usd == pytest.approx(8 * 0.5 / 1_000_000)


# ---------------------------------------------------------------- R02
async def test_r02_an_unknown_price_is_unknown_and_not_nothing(gateway, upstream):
    up = await upstream(say.reply())
    base_url, heard = await listened(gateway, client_key() + provider(up))
    await ask(base_url)
    assert heard.calls[0].usage.input == 5 and heard.calls[0].cost_usd is None


async def test_r02_tokens_that_nobody_told_are_ours_and_say_so(gateway, upstream):
    up = await upstream(say.reply("four char" * 4, usage=False))
    base_url, heard = await listened(gateway, client_key() + provider(up, models=priced()))
    await ask(base_url)
    (call,) = heard.calls
    assert call.estimated and call.usage.output == 9 and call.cost_usd > 0


async def test_r02_what_was_never_tried_cost_nothing(gateway, upstream):
    up = await upstream(say.reply())
    base_url, heard = await listened(gateway, client_key() + provider(up))
    await ask(base_url, ASK | {"model": "nobody's"})
    (call,) = heard.calls
    assert (call.outcome, call.error_class, call.cost_usd, call.attempts) == ("refused", "no_model", 0.0, [])


# ---------------------------------------------------------------- R03
async def test_r03_every_attempt_is_told_with_its_own_cost_and_times(gateway, upstream):
    a, b = await upstream(say.error(500)), await upstream(say.stream("Hello"))
    base_url, heard = await listened(gateway, client_key() + provider(a, "a", priced()) + provider(b, "b", priced(), keys='["sk-b-12345678"]'))
    await ask(base_url, stream=True, headers=AUTH | {"User-Agent": "curl/8"})
    (call,) = heard.calls
    first, second = call.attempts
    assert (first.label, first.status, first.error_class, first.usage, first.cost_usd) == ("a/m", 500, "server_error", None, 0.0)
    assert (second.label, second.status, second.error_class, second.committed) == ("b/m", 200, "", True)
    assert call.cost_usd == second.cost_usd == pytest.approx((5 * 2 + 7 * 10) / 1_000_000)
    assert 0 < call.upstream_s < call.ended - call.started and first.upstream_s > 0 and not second.waiting_from
    assert (call.client, call.key, call.strategy) == ("curl", "test", "priority")


async def test_r03_an_attempt_that_said_something_and_failed_is_paid_for(gateway, upstream):
    """It answered without a word, but told what it took."""
    bad = say.script(say.Head(200, say.SSE), say.Send(say.frame(finish="stop") + say.frame(choices=[], usage=say.USAGE) + say.DONE))
    a, b = await upstream(bad), await upstream(say.stream("Hello"))
    base_url, heard = await listened(gateway, client_key() + provider(a, "a", priced()) + provider(b, "b", priced(), keys='["sk-b-12345678"]'))
    await ask(base_url, stream=True)
    (call,) = heard.calls
    assert [attempt.cost_usd for attempt in call.attempts] == [pytest.approx(80e-6)] * 2
    assert call.cost_usd == pytest.approx(160e-6) and call.usage.input == 5


async def test_r03_a_stream_that_breaks_is_charged_for_what_was_seen(gateway, upstream):
    up = await upstream(say.stream("x" * 400, "y" * 400).but(say.Reset(), after=3))
    base_url, heard = await listened(gateway, client_key() + provider(up, models=priced()))
    await ask(base_url, stream=True)
    (call,) = heard.calls
    assert call.outcome == "broken" and call.estimated and call.usage.output == 200
    assert call.cost_usd == pytest.approx((call.usage.input * 2 + 200 * 10) / 1_000_000)


async def test_r03_a_client_that_leaves_is_charged_for_what_was_seen_and_is_nobodys_failure(gateway, upstream):
    up = await upstream(say.stall("x" * 400))
    base_url, heard = await listened(gateway, client_key() + provider(up, models=priced()))
    async with aiohttp.ClientSession() as session:
        async with session.post(base_url + "/v1/chat/completions", json=ASK | {"stream": True}, headers=AUTH) as got:
            async for line in got.content:
                if b"xxxx" in line:
                    break
            got.close()
    while not heard.calls:
        await asyncio.sleep(0.001)
    (call,) = heard.calls
    assert call.outcome == "client_gone" and call.attempts[0].error_class == "client_gone" and call.attempts[0].ended
    assert call.usage.output == 100 and call.cost_usd > 0


# ---------------------------------------------------------------- R04
CAPTURE = "[log]\ncapture_bodies = true\n"


async def written(gateway):
    """What the records say, once everything is on the disk."""
    store = gateway.listener.parts.store
    if hasattr(store, "writer"):
        await store.ledger.settle()
        await store.writer.flush()
    return store.ledger.read


async def test_r04_bodies_are_kept_masked_cut_and_compressed(gateway, upstream, tmp_path):
    up = await upstream(say.stream("the key is ", "sk-abcdefghijklmnop1234", " and sk-up-1-secret-of-the-provider"))
    base_url = await gateway(f'[store]\nurl = "sqlite:{tmp_path}/x.db"\n' + CAPTURE + client_key()
                             + provider(up, keys='["sk-up-1-secret-of-the-provider"]'))
    told = ASK | {"messages": [{"role": "user", "content": f"my token: hunter22hunter22 {'long ' * 100_000}"}]}
    await ask(base_url, told, stream=True)
    read = await written(gateway)
    (row,) = (await reading.requests(read)).requests
    story = await reading.request(read, row.id)
    assert [(kept.kind, kept.cut) for kept in story.artifacts] == [("request", True), ("response", False)]
    asked, answered = [await reading.artifact(read, row.id, kind) for kind in ("request", "response")]
    assert story.artifacts[0].n_bytes == row.bytes_in > BODY_LIMIT >= len(asked) and b"long long" in asked
    assert b"the key is " in answered and answered.endswith(b"data: [DONE]\n\n") and story.artifacts[1].n_bytes == row.bytes_out
    assert not any(secret in asked + answered for secret in (b"hunter22", b"abcdefghijklmnop1234", b"secret-of-the-provider"))
    on_disk = sum(file.stat().st_size for file in tmp_path.glob("x.db*"))
    assert on_disk < 500_000, "compressed"
    assert await reading.artifact(read, row.id, "other") is None and await reading.artifact(read, "no number", "request") is None


async def test_r04_errors_and_whole_answers_are_kept_too(gateway, upstream, tmp_path):
    up = await upstream([say.reply("Hello"), say.error(500)])
    base_url = await gateway(f'[store]\nurl = "sqlite:{tmp_path}/x.db"\n' + CAPTURE + client_key() + provider(up))
    whole, failed = await ask(base_url), await ask(base_url)
    read = await written(gateway)
    second, first = (await reading.requests(read)).requests
    assert await reading.artifact(read, first.id, "response") == whole.body
    assert await reading.artifact(read, second.id, "response") == failed.body and second.outcome == "failed"


async def test_r04_nothing_is_kept_unless_somebody_wants_it(gateway, upstream, tmp_path):
    up = await upstream(say.reply("Hello"))
    base_url = await gateway(f'[store]\nurl = "sqlite:{tmp_path}/x.db"\n' + client_key() + provider(up))
    await ask(base_url)
    assert list(await (await written(gateway))("SELECT * FROM artifacts", ())) == []


# ---------------------------------------------------------------- the ledger
@pytest.mark.parametrize("url", ["memory:", "sqlite:{}/x.db", "postgresql:"])
async def test_r03_every_request_is_in_the_ledger_whatever_its_end(gateway, upstream, tmp_path, url, request):
    url = await postgres.schema(request.getfixturevalue("pg_server")) if url == "postgresql:" else url
    a, b = await upstream(say.error(500)), await upstream([say.stream("Hello"), say.error(500), say.reply("Hi")])
    base_url = await gateway(f'[store]\nurl = "{url.format(tmp_path)}"\n[routing]\ntransient_cooldown_s = 0\n' + client_key()
                             + provider(a, "a", priced()) + provider(b, "b", priced(), keys='["sk-b-12345678"]'))
    await ask(base_url, stream=True)
    await ask(base_url, ASK | {"model": "nobody's"})
    await ask(base_url, headers={"Authorization": "Bearer wrong"})
    await ask(base_url)
    read = await written(gateway)
    rows = (await reading.requests(read)).requests
    assert [(row.outcome, row.error, row.attempts, row.status) for row in rows[:0:-1]] == [
        ("ok", "", 2, 200), ("refused", "no_model", 0, 404), ("refused", "unauthorized", 0, 401)]
    assert (rows[0].outcome, rows[0].status) == ("failed", 502) and rows[0].attempts
    story = await reading.request(read, rows[-1].request)
    assert [(one.provider, one.status, one.error) for one in story.attempts] == [("a", 500, "server_error"), ("b", 200, "")]
    whole = await totals.totals(read)
    assert (whole.requests, whole.ok, whole.refused, whole.failed, whole.attempts) == (4, 1, 2, 1, sum(row.attempts for row in rows))
    assert whole.cost_usd == pytest.approx(80e-6)
    assert {("a", "server_error"), ("b", "")} <= {(row.provider, row.error) for row in await totals.fared(read)}
