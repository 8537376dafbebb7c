"""Several workers, and several nodes with a real Valkey: what one learns all obey, no limit is passed, nothing is lost with any of them."""
import asyncio
import os
import signal
from collections import Counter

import aiohttp
import pytest

from gateway.mock import script as say
from tests import postgres
from tests.conftest import client_key, provider
from tests.nodes import Node, ask, get, get_json, until
from tests.unit.mcp.conftest import ADMIN_KEY, ON, bearer, over_sse, said
from tests.valkey import Server

STORE = '[store]\nurl = "memory:"\n'


@pytest.fixture
async def start(tmp_path, stack):
    """``await start(config, options …)``: a node that accepts."""
    made = []

    async def started(config, *options):
        config = config if "[store]" in config else STORE + config
        node = Node(tmp_path / f"node{len(made)}", config, *options)
        made.append(node)
        stack.push_async_callback(asyncio.to_thread, node.end)
        await node.ready()
        return node
    return started


@pytest.fixture
def valkey(tmp_path):
    server = Server(tmp_path)
    server.start()
    yield server
    server.kill()


def statuses(answers):
    return Counter(status for status, _, _ in answers)


async def at_once(nodes, n, **more):
    return await asyncio.gather(*(ask(nodes[i % len(nodes)].url, **more) for i in range(n)))


async def test_a_limit_is_one_for_all_workers(start, upstream):
    up = await upstream(say.reply("hi"))
    node = await start(client_key(rpm="20") + provider(up), "--workers", "2")
    answers = statuses(await at_once([node], 60))
    assert set(answers) == {200, 429}
    assert 18 <= answers[200] <= 22                  # and what comes back in the meantime
    assert len(up.requests) == answers[200]


async def test_a_cooldown_is_obeyed_by_all_workers(start, upstream):
    def answer(asked):
        return say.error(429, headers={"Retry-After": "60"}) if "a1" in asked.headers["authorization"] else say.reply("from a2")
    up = await upstream(answer)
    node = await start(client_key() + provider(up, keys='["sk-a1", "sk-a2"]'), "--workers", "3")
    await until_told(up, node)
    before = len(up.requests)
    assert statuses(await at_once([node], 24)) == {200: 24}
    assert len(up.requests) == before + 24           # nobody asked the one that rests


async def until_told(up, node):
    """Ask until somebody has met the key that refuses, and wait for what a second allows."""
    while not any("a1" in asked.headers["authorization"] for asked in up.requests):
        assert (await ask(node.url))[0] == 200
    await asyncio.sleep(0.5)


async def test_metrics_and_the_page_are_those_of_all_workers_also_of_one_that_is_gone(start, upstream):
    up = await upstream(say.reply("hi"))
    node = await start(client_key() + provider(up), "--workers", "2")
    await at_once([node], 20)
    assert all([await counted(node) == 20 for _ in range(6)])
    assert [(await get_json(node.url, "/admin/api/overview"))["total_requests"] for _ in range(4)] == [20] * 4
    gone = node.pids[0]
    os.kill(gone, signal.SIGKILL)
    await until(lambda: gone not in node.pids and len(node.pids) == 2)
    assert (await ask(node.url))[0] == 200
    await asyncio.sleep(0.3)
    assert all([await counted(node) == 21 for _ in range(4)])


async def counted(node):
    page = (await get(node.url, "/metrics")).decode()
    return sum(float(line.split()[-1]) for line in page.splitlines() if line.startswith("gateway_requests_total{"))


async def test_a_worker_that_crashes_is_started_again_and_nobody_is_refused_a_connection(start, upstream):
    up = await upstream(say.reply("hi"))
    node = await start(client_key() + provider(up), "--workers", "2")
    first = node.pids
    os.kill(first[0], signal.SIGKILL)
    answers = await asyncio.gather(*(ask(node.url) for _ in range(30)))
    assert statuses(answers) == {200: 30}
    await until(lambda: len(node.pids) == 2 and node.pids != first)
    assert "another one starts" in node.log.read_text()


async def test_sigterm_drains_all_workers_and_a_reload_reaches_all(start, upstream):
    slow, other = await upstream(say.stream("to ", "the ", "end", delay_s=0.15)), await upstream(say.reply("other"))
    node = await start(client_key() + provider(slow, "slow"), "--workers", "2")
    file = node.log.parent / "gateway.toml"
    file.write_text(STORE + client_key() + provider(slow, "slow") + provider(other, "other", models='["o"]'))
    node.signal(signal.SIGHUP)
    await asyncio.sleep(0.7)
    assert statuses(await at_once([node], 10, model="o")) == {200: 10}
    running = [asyncio.create_task(ask(node.url, stream=True)) for _ in range(8)]
    await slow.until(lambda: slow.busy == 8)
    node.signal(signal.SIGTERM)
    assert all(body.rstrip().endswith(b"data: [DONE]") for _, body, _ in await asyncio.gather(*running))
    assert await node.ended() == 0


async def test_workers_end_with_their_supervisor(start, upstream):
    node = await start(client_key() + provider(await upstream(say.reply("hi"))), "--workers", "2")
    workers = node.pids
    node.signal(signal.SIGKILL)

    def gone():
        return not any(os.path.exists(f"/proc/{pid}") and "Z" not in open(f"/proc/{pid}/stat").read().split()[2] for pid in workers)
    await until(gone)


async def test_a_response_is_gone_on_from_at_any_worker(start, upstream):
    up = await upstream(say.reply("hi"))
    node = await start(client_key() + provider(up), "--workers", "3")
    import msgspec
    status, body, _ = await ask(node.url, "/v1/responses", input="one", messages=None)
    assert status == 200, body
    first = msgspec.json.decode(body)["id"]
    answers = await asyncio.gather(*(ask(node.url, "/v1/responses", input="two", messages=None, previous_response_id=first)
                                     for _ in range(9)))
    assert statuses(answers) == {200: 9}


async def test_a_client_of_mcp_by_sse_may_post_to_any_worker(start, upstream):
    up = await upstream(say.reply("hi"))
    node = await start(ON + client_key() + provider(up), "--workers", "3")
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True), headers=bearer(ADMIN_KEY)) as session, \
            session.get(f"{node.url}/mcp/sse") as stream:
        while not (where := (await stream.content.readline()).decode()).startswith("data: "):
            assert where
        for _ in range(12):                          # a connection for each
            async with session.post(node.url + where.removeprefix("data: ").strip(), json=ping) as told:
                assert told.status == 202, await told.text()
    for _ in range(4):
        async with over_sse(node.url, mode="legacy") as client:
            assert said(await client.call_tool("list_models", {}))["models"]


# ---------------------------------------------------------------------- nodes
async def two_nodes(start, valkey, config):
    state = f'[state]\nurl = "{valkey.url}"\n'
    return list(await asyncio.gather(*(start(state + config, "--workers", "2") for _ in range(2))))


async def test_nodes_keep_a_limit_a_cooldown_and_a_response_together(start, upstream, valkey):
    def answer(asked):
        return say.error(429, headers={"Retry-After": "60"}) if "a1" in asked.headers["authorization"] else say.reply("fine")
    up = await upstream(answer)
    nodes = await two_nodes(start, valkey, client_key() + client_key("few", "gw-few", rpm="30", concurrency="40")
                            + provider(up, keys='["sk-a1", "sk-a2"]'))
    answers = statuses(await at_once(nodes, 120, key="gw-few"))
    assert 26 <= answers[200] <= 33
    assert answers[429] == 120 - answers[200]
    await until_told(up, nodes[0])
    before = len(up.requests)
    assert statuses(await at_once(nodes, 24)) == {200: 24}
    assert len(up.requests) == before + 24
    import msgspec
    _, body, _ = await ask(nodes[0].url, "/v1/responses", input="one", messages=None)
    first = msgspec.json.decode(body)["id"]
    status, body, _ = await ask(nodes[1].url, "/v1/responses", input="two", messages=None, previous_response_id=first)
    assert status == 200, body
    everything = valkey.everything()
    assert b"few" not in everything and b"sk-a" not in everything and b"gw-" not in everything.replace(b"gateway:", b"")
    assert all(key.startswith("gateway:") and ttl > 0 for key, ttl in valkey.keys().items())


async def test_a_valkey_that_is_killed_and_comes_back_empty_loses_no_request(start, upstream, valkey):
    up = await upstream(say.reply("hi"))
    nodes = await two_nodes(start, valkey, client_key(rpm="100000", tpm="100000000") + provider(up, limits="{rpm = 100000, concurrency = 500}"))
    answers, going = [], True

    async def load(node):
        while going:
            answers.append(await ask(node.url))
    clients = [asyncio.create_task(load(nodes[n % 2])) for n in range(6)]
    await asyncio.sleep(0.7)
    valkey.kill()
    await asyncio.sleep(1.2)
    during = (await get(nodes[0].url, "/metrics")).decode()
    ready = await get_json(nodes[0].url, "/readyz")
    await asyncio.to_thread(valkey.start)
    await asyncio.sleep(1.2)
    after = (await get(nodes[0].url, "/metrics")).decode()
    going = False
    await asyncio.gather(*clients)
    assert statuses(answers) == {200: len(answers)}
    assert "gateway_shared_state_down 1.0" in during and "gateway_shared_state_down 0.0" in after
    assert ready["status"] == "ok"
    log = nodes[0].log.read_text()
    assert log.count("cannot be reached") == 2       # each worker says it once
    assert log.count("the shared state is back") == 2


async def test_without_valkey_a_node_keeps_to_its_part_of_a_limit(start, upstream, valkey):
    up = await upstream(say.reply("hi"))
    nodes = await two_nodes(start, valkey, client_key(rpm="40") + provider(up))
    assert statuses(await at_once(nodes, 4)) == {200: 4}
    await asyncio.sleep(1.2)                         # so that all know of all
    valkey.kill()
    await asyncio.sleep(1.0)
    answers = statuses(await at_once(nodes, 120))
    assert 20 <= answers[200] <= 48
    assert answers[429] == 120 - answers[200]


async def test_a_successor_with_workers_takes_the_sockets_over_and_nobody_is_refused(start, upstream):
    up = await upstream(say.reply("hi"))
    node = await start(client_key() + provider(up), "--workers", "2")
    url = f"http://127.0.0.1:{node.url.rpartition(':')[2]}"
    answers, going = [], True

    async def load():
        while going:
            answers.append(await ask(url))
    clients = [asyncio.create_task(load()) for _ in range(3)]
    node.signal(signal.SIGUSR2)
    assert await node.ended() == 0
    await asyncio.sleep(0.2)
    going = False
    await asyncio.gather(*clients)
    log = node.log.read_text()
    os.kill(int(log.rpartition("process ")[2].split()[0]), signal.SIGTERM)
    assert statuses(answers) == {200: len(answers)}


async def test_a_budget_is_hard_for_two_nodes_with_two_workers_each(start, upstream, valkey):
    up = await upstream(say.reply("hi"))             # 5 tokens in, 7 out
    priced = '[{id = "m", max_output = 20, price = {input = 0, output = 1_000}}]'
    nodes = await two_nodes(start, valkey, client_key(budget_usd_day="1.0") + provider(up, models=priced))
    answers = statuses(await at_once(nodes, 300))
    assert set(answers) <= {200, 402, 429}
    assert 60 <= answers[200] <= 142                 # $0.007 each: 142 are a dollar


async def test_two_nodes_with_one_valkey_and_one_postgresql_keep_every_record_once(start, upstream, valkey, pg_server):
    import asyncpg
    database = await postgres.schema(pg_server)
    up = await upstream(say.reply("hi"))
    nodes = await two_nodes(start, valkey, f'[store]\nurl = "{database}"\n' + client_key() + client_key("few", "gw-few", rpm="30")
                            + provider(up))
    answers = statuses(await at_once(nodes, 60, key="gw-few")) + statuses(await at_once(nodes, 40))
    assert answers[200] <= 40 + 33 and answers[200] + answers[429] == 100
    for node in nodes:
        await asyncio.to_thread(node.end)
    db = await asyncpg.connect(database)
    try:
        told = await db.fetch("SELECT status, count(*) AS n FROM requests GROUP BY status")
    finally:
        await db.close()
    assert {row["status"]: row["n"] for row in told} == dict(answers)
