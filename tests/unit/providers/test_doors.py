"""Each combination of format, key and quirks that the catalogue has, asked for an answer: address, headers and body as documented."""
import json
import urllib.parse

import pytest

from gateway.mock.script import body_of, error
from gateway.providers.auth import DEFAULT_AUTH
from gateway.providers.presets import filled, presets
from gateway.providers.quirks import QUIRKS, combine
from tests.conftest import provider
from tests.talk import ask

KEY = "sk-own-1234567890"
VALUE = "some-value"
TOOL = {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {}}}}
BODY = {
    "messages": [
        {"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "reasoning_content": "I look.",
         "tool_calls": [{"id": "call_a_long_one", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "call_a_long_one", "content": "seen"}, {"role": "user", "content": "And?"}],
    "tools": [TOOL], "max_tokens": 64, "seed": 7, "presence_penalty": 0.5, "frequency_penalty": 0.5, "logit_bias": {"1": 1},
    "logprobs": True, "top_logprobs": 1, "user": "u", "store": False, "metadata": {"a": "b"}, "service_tier": "auto",
    "parallel_tool_calls": True, "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}},
}
# format -> (what is appended to the address, what holds the dialogue)
PATHS = {
    "openai-chat": ("/chat/completions", "messages"), "openai-responses": ("/responses", "input"), "anthropic": ("/messages", "messages"),
    "gemini": ("/models/{model}:streamGenerateContent?alt=sse", "contents"), "cohere": ("/chat", "messages"), "ollama": ("/api/chat", "messages"),
    "bedrock-converse": ("/model/{model}/converse-stream", "messages"),
}
VERTEX = "/models/{model}:streamRawPredict"
HEADERS = {"bearer": ("authorization", f"Bearer {KEY}"), "x-api-key": ("x-api-key", KEY), "x-goog-api-key": ("x-goog-api-key", KEY),
           "api-key": ("api-key", KEY), "oauth": ("authorization", "Bearer made-1"), "gcp": ("authorization", "Bearer made-1")}


def said(body, role):
    return [message for message in body["messages"] if message["role"] == role]


# flag -> does the body keep to it?
KEPT = {
    "no_stream_options": lambda body: "stream_options" not in body,
    "developer_role": lambda body: said(body, "developer"),
    "no_reasoning_content": lambda body: all("reasoning_content" not in message for message in body["messages"]),
    "tool_ids_9": lambda body: said(body, "tool")[0]["tool_call_id"].isalnum() and len(said(body, "tool")[0]["tool_call_id"]) == 9
    and said(body, "assistant")[0]["tool_calls"][0]["id"] == said(body, "tool")[0]["tool_call_id"],
    "structured_outputs": lambda body: body["output_config"]["format"]["type"] == "json_schema",
    "unsigned_thinking": lambda body: said(body, "assistant")[0]["content"][0] == {"type": "thinking", "thinking": "I look."},
    "json_schema": lambda body: "parametersJsonSchema" in body["tools"][0]["functionDeclarations"][0],
    "call_ids": lambda body: any("id" in part.get("functionCall", {}) for turn in body["contents"] for part in turn["parts"]),
    "cache_control": lambda body: True,          # tests/unit/wire/test_chat_strict.py
    "server_tools": lambda body: True,           # tests/unit/wire/test_anthropic_build.py, test_gemini_build.py
    "vertex": lambda body: body["anthropic_version"].startswith("vertex-"),
}


def auth_of(preset):
    return preset.auth or DEFAULT_AUTH[preset.wire]


def combinations():
    """One entry of the catalogue for each."""
    found = {}
    for preset in presets().values():
        if not preset.in_process:
            found.setdefault((preset.wire, auth_of(preset), preset.quirks, bool(preset.query), bool(preset.headers)), preset)
    return list(found.values())


def secrets(preset, up):
    """What a user writes as credentials, and what the upstream's token door has to do with it."""
    token_url = f"http://127.0.0.1:{up.port}/token"
    match auth_of(preset):
        case "sigv4":
            return f'{{aws_access_key_id = "AKIDEXAMPLE", aws_secret_access_key = "{KEY}"}}'
        case "oauth":
            return f'{{token_url = "{token_url}", client_id = "c", refresh_token = "r"}}'
        case "gcp":
            account = {"client_email": "a@b.example", "private_key": private_key(), "token_uri": token_url}
            return "{" + ", ".join(f"{name} = {json.dumps(value)}" for name, value in account.items()) + "}"
    return ""


def private_key():
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa", reason="the extra secrets")
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def answer(asked):
    if asked.path == "/token":
        return body_of(json.dumps({"access_token": "made-1", "refresh_token": "r2", "expires_in": 3600}).encode())
    return error(400, "enough seen")


async def request_of(preset, upstream, gateway, model):
    """What the upstream saw when a chat client asked for this model."""
    up = await upstream(answer)
    path = urllib.parse.urlsplit(filled(preset.base_url, dict.fromkeys(preset.vars, VALUE))).path
    more = {"preset": f'"{preset.id}"'}
    if asked := [name for name in preset.vars if f"{{{name}}}" in str((preset.query, preset.headers)) or name == "region"]:
        more["vars"] = "{" + ", ".join(f'{name} = "{VALUE}"' for name in asked) + "}"
    if credentials := secrets(preset, up):
        more["oauth" if auth_of(preset) == "oauth" else "credentials"] = credentials
    lines = provider(f"http://127.0.0.1:{up.port}{path}", models=json.dumps([model]), keys=json.dumps([KEY]), **more)
    if credentials or auth_of(preset) == "none":
        lines = "\n".join(line for line in lines.split("\n") if not line.startswith("api_keys"))
    got = await ask(await gateway(lines), BODY | {"model": f"up/{model}"}, stream=True, headers={})
    seen = [asked for asked in up.requests if asked.path != "/token"]
    assert seen, got.body
    return path, seen[0]


@pytest.mark.parametrize("preset", combinations(), ids=lambda preset: preset.id)
async def test_a_door_is_used_as_it_is_described(preset, upstream, gateway):
    model, quirks = "some-model", combine(preset.quirks)
    path, asked = await request_of(preset, upstream, gateway, model)
    tail, dialogue = PATHS[preset.wire]
    tail = (VERTEX if "vertex" in quirks.flags else tail).format(model=quirks.id_prefix + model)
    query = urllib.parse.urlencode({name: filled(value, dict.fromkeys(preset.vars, VALUE)) for name, value in preset.query.items()})
    assert asked.path == path + tail + (f"?{query}" if query else "")

    name, value = HEADERS.get(auth_of(preset), ("", ""))
    assert asked.headers.get(name) == (value or None)
    assert ("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/" in asked.headers.get("authorization", "")) == (auth_of(preset) == "sigv4")
    assert ("anthropic-version" in asked.headers) == (preset.wire == "anthropic")
    for name, value in preset.headers.items():
        assert asked.headers[name.lower()] == filled(value, dict.fromkeys(preset.vars, VALUE))

    body = asked.json()
    assert body[dialogue]
    if preset.wire == "openai-chat":
        assert body["model"] == quirks.id_prefix + model and body["stream"] is True
        assert not body.keys() & (quirks.drop | quirks.rename.keys() - set(quirks.rename.values()))
        assert all(new in body for old, new in quirks.rename.items() if old in BODY)
        assert "developer_role" in quirks.flags or not said(body, "developer")
    for flag in quirks.flags:
        assert KEPT[flag](body), flag


def test_every_quirk_stands_in_a_combination():
    assert {name for preset in combinations() for name in preset.quirks} == set(QUIRKS)
