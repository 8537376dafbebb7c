"""The list of models in the shape of whoever asks."""
import pytest

from gateway.mock import script as say
from tests.conftest import KEY, client_key, provider
from tests.talk import AUTH, ask

MODELS = '["m", {id = "org/deep/x", context = 8000, max_output = 900}, {id = "vec", kind = "embedding", dimensions = 3}]'
ANTHROPIC = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
GOOGLE = {"x-goog-api-key": KEY}


@pytest.fixture
async def get(gateway, upstream):
    up = await upstream(say.reply("hello"))
    base_url = await gateway(client_key() + client_key("small", "gw-small", models='["m"]') + provider(up, models=MODELS))

    async def go(path, headers=AUTH):
        return await ask(base_url, method="GET", path=path, headers=headers)
    return go


async def test_openai_clients_get_a_list(get):
    got = (await get("/v1/models")).json
    assert got["object"] == "list" and [row["id"] for row in got["data"]] == ["auto", "fusion", "m", "org/deep/x", "vec"]
    assert got["data"][3]["context_window"] == 8000 and got["data"][4]["dimensions"] == 3


async def test_anthropic_clients_get_pages_of_chat_models_with_names_that_they_know(get):
    got = (await get("/v1/models", ANTHROPIC)).json
    ids = [row["id"] for row in got["data"]]
    assert ids[0] == "auto" and ids[-2:] == ["m", "org/deep/x"] and any("sonnet" in name for name in ids)
    assert all(row["type"] == "model" and row["display_name"] and row["created_at"].endswith("Z") for row in got["data"])
    assert (got["has_more"], got["first_id"], got["last_id"]) == (False, ids[0], ids[-1])
    page = (await get("/v1/models?limit=2", ANTHROPIC)).json
    assert page["has_more"] and page["last_id"] == ids[1]
    rest = (await get(f"/v1/models?after_id={ids[1]}", ANTHROPIC)).json
    assert [row["id"] for row in rest["data"]] == ids[2:]
    before = (await get(f"/v1/models?before_id={ids[3]}&limit=2", ANTHROPIC)).json
    assert [row["id"] for row in before["data"]] == ids[1:3] and before["has_more"]


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "after_id=nobody"])
async def test_a_bad_page_is_refused_in_anthropics_words(get, query):
    got = await get("/v1/models?" + query, ANTHROPIC)
    assert got.status == 400 and got.json["type"] == "error" and got.json["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("path, headers", [("/v1/models", GOOGLE), ("/v1beta/models", AUTH), (f"/v1beta/models?key={KEY}", {})])
async def test_google_clients_get_what_their_library_reads(get, path, headers):
    rows = {row["name"]: row for row in (await get(path, headers)).json["models"]}
    assert "models/auto" in rows and "models/gemini-2.5-flash" in rows
    assert rows["models/org/deep/x"]["inputTokenLimit"] == 8000 and rows["models/org/deep/x"]["outputTokenLimit"] == 900
    assert "generateContent" in rows["models/m"]["supportedGenerationMethods"]
    assert rows["models/vec"]["supportedGenerationMethods"] == ["embedContent", "batchEmbedContents"]


async def test_google_lists_come_in_pages_too(get):
    first = (await get("/v1beta/models?pageSize=2")).json
    second = (await get(f"/v1beta/models?pageSize=100&pageToken={first['nextPageToken']}")).json
    assert len(first["models"]) == 2 and "nextPageToken" not in second
    assert second["models"][0] not in first["models"]


@pytest.mark.parametrize("path, headers, key, value", [
    ("/v1/models/org/deep/x", AUTH, "id", "org/deep/x"), ("/v1/models/claude-sonnet-4-5", ANTHROPIC, "id", "claude-sonnet-4-5"),
    ("/v1beta/models/up/m", AUTH, "name", "models/up/m"), ("/v1/models/models%2Fm", GOOGLE, "name", "models/m"),
    ("/v1/models/vec", AUTH, "kind", "embedding")])
async def test_one_model_in_each_shape(get, path, headers, key, value):
    assert (await get(path, headers)).json[key] == value


async def test_an_unknown_model_is_404_in_each_shape(get):
    assert (await get("/v1/models/no", AUTH)).json["error"]["code"] == "model_not_found"
    assert (await get("/v1/models/no", ANTHROPIC)).json["error"]["type"] == "not_found_error"
    assert (await get("/v1beta/models/no")).json["error"]["status"] == "NOT_FOUND"


async def test_a_key_sees_what_it_may_use(get):
    ids = [row["id"] for row in (await get("/v1/models", {**ANTHROPIC, "x-api-key": "gw-small"})).json["data"]]
    assert "m" in ids and "auto" not in ids and "org/deep/x" not in ids
    assert (await get("/v1/models/org/deep/x", {"x-api-key": "gw-small"})).status == 404
