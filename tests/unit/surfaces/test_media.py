"""Images, speech, transcriptions, moderations and ranking are passed on, and move on within one model."""
import json

import aiohttp
import pytest

from gateway.mock.script import body_of
from tests.conftest import provider

FORM = "multipart/form-data; boundary=xyz"
SOUND = b"\x00\xff\r\n--xy not the boundary\r\n\x01"
UPLOAD = (b'--xyz\r\nContent-Disposition: form-data; name="model"\r\n\r\nears\r\n'
          b'--xyz\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\n' + SOUND
          + b"\r\n--xyz--\r\n")


def answer(data, status=200, content_type="application/json"):
    return body_of(data, status, {"Content-Type": content_type})


def serving(kind, *, aliases=""):
    return f'[{{id = "m", kind = "{kind}"{aliases}}}]'


@pytest.fixture
async def http(stack):
    return await stack.enter_async_context(aiohttp.ClientSession())


JSON_DOORS = [
    ("/v1/images/generations", "image", {"prompt": "a cat", "size": "256x256", "x": 1}, b'{"created":1,"data":[{"b64_json":"AA=="}]}'),
    ("/v1/moderations", "moderation", {"input": ["a", "b"]}, b'{"id":"x","results":[{"flagged":false}]}'),
    ("/v1/rerank", "rerank", {"query": "q", "documents": ["a"], "top_n": 1}, b'{"results":[{"index":0,"relevance_score":1.0}]}'),
]


@pytest.mark.parametrize(("path", "kind", "body", "said"), JSON_DOORS, ids=[row[0] for row in JSON_DOORS])
async def test_a_body_goes_on_as_it_is_but_for_the_models_name(path, kind, body, said, upstream, gateway, http):
    up = await upstream(answer(said))
    base = await gateway(provider(up, models=serving(kind, aliases=', aliases = ["other"]')))
    async with http.post(base + path, json={"model": "other", **body}) as reply:
        assert reply.status == 200 and await reply.read() == said
        assert reply.headers["X-Routed-Via"] == "up/m"
    asked = up.requests[0]
    assert asked.path == path and asked.json() == {"model": "m", **body}
    assert asked.headers["authorization"] == "Bearer sk-up-1"


async def test_speech_comes_back_as_the_bytes_it_is(upstream, gateway, http):
    up = await upstream(answer(SOUND, content_type="audio/mpeg"))
    base = await gateway(provider(up, models=serving("speech")))
    async with http.post(base + "/v1/audio/speech", json={"model": "m", "input": "hi", "voice": "v"}) as reply:
        assert (reply.status, await reply.read(), reply.headers["Content-Type"]) == (200, SOUND, "audio/mpeg")


async def test_a_form_goes_on_with_its_file_untouched(upstream, gateway, http):
    up = await upstream(answer(b'{"text":"hello"}'))
    base = await gateway(provider(up, models=serving("transcription", aliases=', aliases = ["ears"]')))
    async with http.post(base + "/v1/audio/transcriptions", data=UPLOAD, headers={"Content-Type": FORM}) as reply:
        assert await reply.json() == {"text": "hello"}
    assert up.requests[0].body == UPLOAD.replace(b"ears", b"m") and up.requests[0].headers["content-type"] == FORM
    odd = FORM.replace("multipart/form-data", "Multipart/Form-Data")
    async with http.post(base + "/v1/audio/transcriptions", data=UPLOAD, headers={"Content-Type": odd}) as reply:
        assert await reply.json() == {"text": "hello"}


async def test_a_failure_moves_on_within_the_model_and_never_to_another(upstream, gateway, http):
    broken, fine, other = await upstream(answer(b"{}", 503)), await upstream(answer(b'{"data":[{}]}')), await upstream(answer(b"{}"))
    base = await gateway(provider(broken, "a", serving("image")) + provider(fine, "b", serving("image"))
                         + provider(other, "c", '[{id = "n", kind = "image"}]'))
    async with http.post(base + "/v1/images/generations", json={"model": "m", "prompt": "x"}) as reply:
        assert reply.status == 200 and reply.headers["X-Routed-Via"] == "b/m"
        assert reply.headers["X-Fallback-Attempts"] == "1"
    assert not other.requests


async def test_a_page_or_an_error_under_200_is_no_answer(upstream, gateway, http):
    up = await upstream(answer(b'{"error":{"message":"no"}}'))
    base = await gateway(provider(up, models=serving("image")))
    async with http.post(base + "/v1/images/generations", json={"prompt": "x"}) as reply:
        assert reply.status == 502


BAD = [
    ("/v1/images/generations", b"[]", "application/json", 400, None),
    ("/v1/images/generations", b"{", "application/json", 400, None),
    ("/v1/images/generations", b'{"model":1,"prompt":"x"}', "application/json", 400, "model"),
    ("/v1/images/generations", b'{"model":"m"}', "application/json", 400, "prompt"),
    ("/v1/images/generations", b'{"model":"zz","prompt":"x"}', "application/json", 404, "model"),
    ("/v1/rerank", b'{"query":"x"}', "application/json", 404, "model"),
    ("/v1/audio/transcriptions", b"{}", "application/json", 415, "content-type"),
    ("/v1/audio/transcriptions", UPLOAD[:-9], FORM, 400, None),
    ("/v1/images/generations", UPLOAD, FORM.upper(), 415, "content-type"),
    ("/v1/audio/transcriptions", UPLOAD, "multipart/form-data", 400, "content-type"),
    ("/v1/audio/transcriptions", b"--xyz--\r\n", FORM, 400, "file"),
    ("/v1/files", b"{}", "application/json", 404, None),
    ("/v1/batches", b"{}", "application/json", 404, None),
    ("/v1/realtime", b"{}", "application/json", 404, None),
]


@pytest.mark.parametrize(("path", "body", "kind", "status", "param"), BAD)
async def test_what_is_wrong_is_told_in_the_surface_s_shape(path, body, kind, status, param, gateway, http):
    base = await gateway(provider("http://127.0.0.1:9/v1", models='[{id = "m", kind = "image"}]'))
    async with http.post(base + path, data=body, headers={"Content-Type": kind}) as reply:
        said = json.loads(await reply.read())["error"]
        assert (reply.status, said["param"]) == (status, param) and said["message"]
