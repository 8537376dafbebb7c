"""Combos that are made while the gateway runs: listed, put, ordered, deleted and tried; served at once and after a restart."""
import pytest

from gateway.config.load import load
from gateway.config.problems import ConfigError
from gateway.core.errors import GatewayError
from gateway.mock import script as say
from gateway.server import compose
from gateway.server.listen import listen
from tests.conftest import client_key, provider
from tests.talk import ASK, ask

WRITTEN = '[[combos]]\nname = "written"\ntargets = ["a/m"]\n'


async def house(gateway, upstream, more="", a=None, b=None, wire_b="openai-chat"):
    up_a, up_b = await upstream(a or say.reply("from a")), await upstream(b or say.reply("from b"))
    base_url = await gateway(client_key() + provider(up_a, "a", keys='["sk-a-123456"]')
                             + provider(up_b, "b", keys='["sk-b-123456"]', wire=f'"{wire_b}"', auth='"bearer"') + WRITTEN + more)
    return base_url, gateway.listener.parts.combobook


async def via(base_url, model):
    got = await ask(base_url, {**ASK, "model": model}, stream=False)
    return got.headers["X-Routed-Via"] if got.status == 200 else got.status


async def problems(book, raw):
    with pytest.raises(ConfigError) as caught:
        await book.put(raw)
    return dict(caught.value.problems)


async def test_a_combo_is_served_as_soon_as_it_is_put(gateway, upstream):
    base_url, book = await house(gateway, upstream)
    assert await via(base_url, "mine") == 404
    made = await book.put({"name": "mine", "targets": ["b/m", "a/m"], "description": "for me"})
    assert (made["source"], made["targets"], made["warnings"]) == ("store", ["b/m", "a/m"], [])
    assert await via(base_url, "mine") == "b/m"
    listed = await ask(base_url, path="/v1/models", method="GET")
    assert "mine" in [row["id"] for row in listed.json["data"]]


async def test_it_is_changed_in_its_place_and_taken_away(gateway, upstream):
    base_url, book = await house(gateway, upstream)
    for name in ("one", "two"):
        await book.put({"name": name, "targets": ["b/m"]})
    await book.put({"name": "one", "targets": ["a/m"], "strategy": "round-robin"})
    assert [(one["name"], one["source"], one["strategy"]) for one in book.listed()] == [
        ("written", "config", "priority"), ("one", "store", "round-robin"), ("two", "store", "priority")]
    assert await via(base_url, "one") == "a/m"
    await book.delete("one")
    assert await via(base_url, "one") == 404
    assert book.find("two")["table"] == {"name": "two", "targets": ["b/m"]}


async def test_a_restart_forgets_none_of_them_and_their_order(gateway, upstream, tmp_path):
    base_url, book = await house(gateway, upstream, f'[store]\nurl = "sqlite:{tmp_path}/g.db"\n')
    for name in ("one", "two", "three"):
        await book.put({"name": name, "targets": [{"target": "b/m", "weight": 2}, "written"], "strategy": "weighted", "max_retries": 2})
    assert await book.order(["three"]) == ["three", "one", "two"]
    await gateway.listener.close(0)
    again = await listen(load(tmp_path / "gateway.toml", {}), "127.0.0.1", 0)
    try:
        assert [one["name"] for one in again.parts.combobook.listed()] == ["written", "three", "one", "two"]
        plan = again.desk.ground.snapshot.combos[1]
        assert (plan.settings.max_retries, [(step.target, step.combo, step.weight) for step in plan.steps]) == (
            2, [("b/m", "", 2), ("", "written", 1)])
        assert await via(f"http://127.0.0.1:{again.port}", "three") in ("a/m", "b/m")
    finally:
        await again.close(0)


async def test_what_another_process_changed_is_taken_over(gateway, upstream, tmp_path):
    store = f'[store]\nurl = "sqlite:{tmp_path}/g.db"\n'
    base_url, book = await house(gateway, upstream, store)
    other = await listen(load(tmp_path / "gateway.toml", {}), "127.0.0.1", 0)
    try:
        await other.parts.combobook.put({"name": "theirs", "targets": ["b/m"]})
        assert await via(base_url, "theirs") == 404
        assert await book.refresh()
        assert await via(base_url, "theirs") == "b/m"
        assert not await book.refresh()
    finally:
        await other.close(0)


@pytest.mark.parametrize(("raw", "path"), [
    ({"targets": ["a/m"]}, "name"),
    ({"name": "written", "targets": ["a/m"]}, "name"),
    ({"name": "no$good", "targets": ["a/m"]}, "name"),
    ({"name": "x"}, "targets"),
    ({"name": "x", "targets": ["a/none"]}, "targets[0]"),
    ({"name": "x", "targets": [{"target": "a/none", "weight": 2}]}, "targets[0].target"),
    ({"name": "x", "targets": [{"target": "a/m", "weight": "much"}]}, "targets[0].weight"),
    ({"name": "x", "targets": "a/m"}, "targets"),
    ({"name": "x", "targets": ["a/m", "x"]}, "targets"),
    ({"name": "x", "targets": ["a/m"], "strategy": "usual"}, "strategy"),
    ({"name": "x", "targets": ["a/m"], "strateggy": "auto"}, "strateggy"),
    ({"name": "x", "targets": ["a/m"], "tool_filter": "("}, "tool_filter"),
    ({"name": "x", "targets": ["a/m"], "weights": {"speed": 1}}, "weights.speed"),
    ({"name": "x", "targets": ["a/m"], "description": "d" * 3_000}, "description"),
])
async def test_what_is_wrong_is_told_by_its_path_and_changes_nothing(gateway, upstream, raw, path):
    _, book = await house(gateway, upstream)
    assert list(await problems(book, raw)) == [path]
    assert [one["name"] for one in book.listed()] == ["written"]


async def test_a_combo_that_would_break_another_is_refused(gateway, upstream):
    _, book = await house(gateway, upstream)
    await book.put({"name": "inner", "targets": ["a/m"]})
    await book.put({"name": "outer", "targets": ["inner"]})
    assert "outer > inner" in (await problems(book, {"name": "inner", "targets": ["a/m", "outer"]}))["targets"]
    await book.put({"name": "deep", "targets": ["outer"], "max_depth": 3})
    await book.put({"name": "below", "targets": ["a/m"]})
    told = await problems(book, {"name": "inner", "targets": ["below"]})
    assert told["targets"].startswith("would break deep")
    with pytest.raises(GatewayError, match="part of outer"):
        await book.delete("inner")


async def test_nothing_of_the_environment_or_of_files_is_read(gateway, upstream, monkeypatch):
    monkeypatch.setenv("HOME_SECRET", "hush")
    _, book = await house(gateway, upstream)
    made = await book.put({"name": "x", "targets": ["a/m"], "description": "${env:HOME_SECRET} ${file:/etc/hostname}",
                           "system_message": "${env:HOME_SECRET}"})
    assert made["table"]["description"] == "${env:HOME_SECRET} ${file:/etc/hostname}"
    assert gateway.listener.desk.ground.snapshot.combos[-1].shape.system_message == "${env:HOME_SECRET}"


async def test_the_configuration_s_are_not_changed_here(gateway, upstream):
    _, book = await house(gateway, upstream)
    for change in (book.delete("written"), book.order(["written"]), book.delete("nobody")):
        with pytest.raises(GatewayError) as caught:
            await change
        assert caught.value.kind == "not_found"
    assert book.find("written")["source"] == "config"


async def test_the_configuration_wins_where_it_takes_a_name(gateway, upstream, tmp_path, caplog):
    base_url, book = await house(gateway, upstream)
    await book.put({"name": "mine", "targets": ["b/m"]})
    file = tmp_path / "gateway.toml"
    file.write_text(file.read_text() + '[[combos]]\nname = "mine"\ntargets = ["a/m"]\n')
    gateway.listener.desk.ground = compose.ground(load(file, {}), gateway.listener.parts)
    assert await via(base_url, "mine") == "a/m"
    assert any("which wins" in line for line in caplog.messages)
    assert [(one["name"], one["source"]) for one in book.listed()] == [("written", "config"), ("mine", "config"), ("mine", "store")]
    await book.delete("mine")
    assert await via(base_url, "mine") == "a/m"


async def test_one_that_leads_nowhere_any_more_is_told_and_harms_nobody(gateway, upstream, tmp_path, caplog):
    base_url, book = await house(gateway, upstream)
    await book.put({"name": "mine", "targets": ["b/m", "a/m"]})
    file = tmp_path / "gateway.toml"
    file.write_text(file.read_text().replace('id = "b"\n', 'id = "c"\n'))
    gateway.listener.desk.ground = compose.ground(load(file, {}), gateway.listener.parts)
    assert await via(base_url, "mine") == "a/m"
    assert book.find("mine")["warnings"] == ["targets[0]: 'b/m' is no provider/model, model or combo; did you mean \"c/m\"?"]


async def test_a_store_that_cannot_be_read_leaves_what_is_known(gateway, upstream, caplog):
    base_url, book = await house(gateway, upstream)
    await book.put({"name": "mine", "targets": ["b/m"]})

    async def broken():
        raise GatewayError("internal", "no disk", status=503)
    book._store.revision = broken
    assert not await book.refresh()
    assert await via(base_url, "mine") == "b/m"
    assert sum("cannot be read" in line for line in caplog.messages) == 1


# ---------------------------------------------------------------- trying one
async def test_every_target_is_asked_once_and_says_how_it_is(gateway, upstream):
    _, book = await house(gateway, upstream, a=say.error(401, "bad key sk-a-123456"), b=say.reply("OK"))
    await book.put({"name": "mine", "targets": ["a/m", "b/m", "written"]})
    bad, good = await book.test("mine")
    assert (bad.target, bad.ok, bad.status, bad.kind, bad.account) == ("a/m", False, 401, "auth", "key1")
    assert "sk-a-123456" not in bad.message
    assert (good.target, good.ok, good.status, good.text) == ("b/m", True, 200, "OK")
    assert not gateway.listener.parts.health.all_resting(0.0), "a test books nothing"
    with pytest.raises(GatewayError, match="no combo"):
        await book.test("nobody")


async def test_a_target_of_another_language_is_asked_in_its_own(gateway, upstream):
    answer = (b'{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"OK"}],'
              b'"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}')
    _, book = await house(gateway, upstream, b=say.body_of(answer), wire_b="anthropic")
    await book.put({"name": "mine", "targets": ["b/m"]})
    told, = await book.test("mine")
    assert (told.ok, told.text) == (True, "OK")
