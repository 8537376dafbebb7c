"""Which secrets does a gateway hold, and how do upstreams give them away? Values that stand nowhere else, servers that repeat all."""
import base64
import json
import urllib.parse
from pathlib import Path

from gateway.mock import script as say
from gateway.mock.script import Head, Reset, Script, Send
from gateway.mock.upstream import Asked

# None has a form by which it would be known as a key: they are found because the gateway knows them, or not at all.
CLIENT, PROVIDER, SECOND, QUERY = "Canary-Client-1q7w", "Canary-Provider-2e8r", "Canary-Second-3t9z", "Canary-Query-4u1i"
REFRESH, OAUTH, HEADER, PROXY = "Canary-Refresh-5o2p", "Canary-Oauth-6a3s", "Canary-Header-7d4f", "Canary-Proxy-8g5h"
OWN_PROXY, ADMIN, PASSWORD, SCRAPE = "Canary-OwnProxy-9j6k", "Canary-Admin-key-1l7y", "Canary-Password-2x8c", "Canary-Scrape-3v9b"
HOOK_PATH, HOOK, COLLECTOR, REDIS = "Canary-HookPath-4n1m", "Canary-Hook-5q2w", "Canary-Collector-6e3r", "Canary-Redis-7t4z"
POSTGRES, ADDRESS, VARIABLE = "Canary-Postgres-8u5i", "Canary-Address-9o6p", "Canary-Variable-1a7s"
MASTER = b"Canary-Master-of-thirty-two-byte"
assert len(MASTER) == 32
TEXTS = (CLIENT, PROVIDER, SECOND, QUERY, REFRESH, OAUTH, HEADER, PROXY, OWN_PROXY, ADMIN, PASSWORD, SCRAPE, HOOK_PATH, HOOK,
         COLLECTOR, REDIS, POSTGRES, VARIABLE)
SEALING = base64.b64encode(MASTER).decode()


def forms(text: str) -> set[bytes]:
    """How it may stand somewhere: as it is, in a URL, in Basic credentials, in base64 or in hexadecimal digits."""
    raw = text.encode()
    return {raw, urllib.parse.quote(text, safe="").encode(), base64.b64encode(raw).rstrip(b"=")[:-1], raw.hex().encode(),
            *(base64.b64encode(user + b":" + raw).rstrip(b"=")[:-1] for user in (b"user", b""))}


NEEDLES = {needle: text for text in TEXTS for needle in forms(text)} | dict.fromkeys(
    (MASTER, SEALING.encode(), MASTER.hex().encode()), "master key")


def found(data: bytes) -> set[str]:
    """The secrets in these bytes, whatever the case of their letters."""
    return {text for needle, text in NEEDLES.items() if needle in data} | {
        text for text in TEXTS if text.lower().encode() in data.lower()}


def config(ports: dict[str, int], log_format: str, password_hash: str) -> str:
    """Everything that can hold a secret holds one."""
    def table(name: str, more: str, port: int = ports["echo"], keys: str = f'["{PROVIDER}"]', path: str = "/v1") -> str:
        return (f'[[providers]]\nid = "{name}"\nbase_url = "http://127.0.0.1:{port}{path}"\nmodels = ["{name}-m", "m"]\n'
                f'api_keys = {keys}\n{more}\n')
    dead = ports["dead"]
    return f'''
[server]
port = 0
[log]
level = "debug"
format = "{log_format}"
capture_bodies = true
fallback_detail_header = true
decision_header = true
[store]
master_key = "{SEALING}"
[state]
url = "redis://user:{REDIS}@127.0.0.1:{dead}/0"
[[auth.keys]]
name = "one"
key = "{CLIENT}"
[admin]
key = "{ADMIN}"
password_hash = "{password_hash}"
[metrics]
key = "{SCRAPE}"
[mcp]
enabled = true
[ollama]
mode = "key"
[otel]
endpoint = "http://127.0.0.1:{ports["sink"]}/otel"
headers = {{Authorization = "Bearer {COLLECTOR}"}}
[[webhooks]]
url = "http://127.0.0.1:{ports["sink"]}/hook/{HOOK_PATH}"
secret = "{HOOK}"
allow_private = true
[[webhooks]]
url = "http://127.0.0.1:{dead}/hook/{HOOK_PATH}"
secret = "{HOOK}"
allow_private = true
[timeouts]
connect_s = 2
first_byte_s = 0.7
''' + "".join((
        table("echo", f'headers = {{X-Team-Token = "{HEADER}"}}',
              keys=f'["{PROVIDER}", {{key = "{SECOND}", label = "second"}}]'),
        table("query", 'auth = "query"', keys=f'["{QUERY}"]'),
        table("claude", 'wire = "anthropic"'),
        table("gemini", 'wire = "gemini"', path="/v1beta"),
        table("responses", 'wire = "openai-responses"'),
        table("signs-in", f'auth = "oauth"\noauth = {{token_url = "http://127.0.0.1:{ports["echo"]}/token", client_id = "id", '
              f'client_secret = "{OAUTH}", refresh_token = "{REFRESH}"}}', keys="[]"),
        table("proxied", f'proxy = "http://user:{PROXY}@127.0.0.1:{ports["proxy"]}"', port=dead),
        table("far-proxied", f'proxy = "http://user:{PROXY}@127.0.0.1:{dead}"', port=dead),
        table("old-proxied", f'transport = "aiohttp"\nproxy = "http://user:{PROXY}@127.0.0.1:{ports["proxy"]}"', port=dead),
        table("socks-proxied", f'proxy = "socks5://user:{PROXY}@127.0.0.1:{dead}"', port=dead),
        table("own-proxied", "", port=dead,
              keys=f'[{{key = "{PROVIDER}", proxy = "http://user:{OWN_PROXY}@127.0.0.1:{ports["proxy"]}"}}]'),
        table("dead", "", port=dead, path=f"/{ADDRESS}/v1"),
        table("told", 'headers = {X-Thing = "${env:CANARY_VARIABLE}"}'),
    ))


def repeated(asked: Asked) -> str:
    """A request in words, as a careless server writes it into its answer."""
    told = " ".join(f"{name}: {value}" for name, value in asked.headers.items() if name != "host")
    return f"cannot do {asked.method} {asked.path} for {told} {asked.body[:4_000].decode('utf-8', 'replace')}"


def echo(asked: Asked) -> Script:
    """An upstream that fails in all ways, and tells what it was asked each time. The last user's words choose the way."""
    words, own = repeated(asked), asked.headers.get("authorization", asked.headers.get("x-api-key", "none"))[-18:]
    heads = {"X-Debug": words[:2_000].replace("\n", " "), "X-Request-Id": own,
             "Location": f"http://127.0.0.1:1/{urllib.parse.quote(words[:600])}", "WWW-Authenticate": f'Bearer realm="{own}"',
             "X-RateLimit-Limit-Requests": own, "Set-Cookie": f"session={own}"}
    for way, script in WAYS.items():
        if f"way={way};".encode() in asked.body:
            return script(words, heads)
    return say.error(500, words, headers=heads)


def _status(status: int):
    return lambda words, heads: say.error(status, words, headers=heads, param=heads["X-Request-Id"],
                                           code=f"bad_{heads['X-Request-Id']}", details={"key": words})


def _stream(*frames_of) -> object:
    return lambda words, heads: Script((Head(200, {**say.SSE, **heads}), *(step for make in frames_of for step in make(words))))


WAYS = {
    **{f"status{status}": _status(status) for status in (400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 529)},
    **{f"redirect{status}": _status(status) for status in (301, 302, 307, 308)},
    "said": lambda words, heads: say.error(500, words[-150:], headers=heads),         # the prompt alone, which a message has room for
    "html": lambda words, heads: say.body_of(f"<html>{words}".encode(), 502, {**say.HTML, **heads}),
    "two hundred": lambda words, heads: say.error(200, words, headers=heads),
    "nonsense": lambda words, heads: say.body_of(words.encode(), 200, {**say.JSON, **heads}),
    "answer": lambda words, heads: say.body_of(json.dumps({
        "id": heads["X-Request-Id"], "object": "chat.completion", "model": heads["X-Request-Id"], "choices": [{
            "index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": words}}], "usage": say.USAGE}).encode(),
        200, {**say.JSON, **heads}),
    "frame": _stream(lambda words: [Send(say.frame(error={"message": words, "code": words}))]),
    "late frame": _stream(lambda words: [Send(say.frame("text ")), Send(say.frame(error={"message": words}))]),
    "text": _stream(lambda words: [Send(say.frame(words)), Send(say.frame(finish="stop")), Send(say.DONE)]),
    "cut text": _stream(lambda words: [Send(data) for at in range(0, len(words), 5) for data in (say.frame(words[at:at + 5]),)]
                        + [Send(say.frame(finish="stop")), Send(say.DONE)]),
    "cut bytes": _stream(lambda words: [Send(say.frame(words)[at:at + 7]) for at in range(0, len(say.frame(words)), 7)] + [Reset()]),
    "comment": _stream(lambda words: [Send(f": {words}\n\n".encode()), Send(say.frame("hi")), Reset()]),
    "no http": lambda words, heads: Script((say.Raw(f"{words}\r\n\r\n".encode()),)),
}


def sink_files(folder: Path) -> dict[str, bytes]:
    """Whatever the gateway has written below its home, but for its configuration."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*")
            if path.is_file() and path.suffix not in (".toml", ".pyc")}
