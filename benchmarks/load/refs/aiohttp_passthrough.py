"""Reference: what does a proxy cost that is nothing but aiohttp on both sides? Key check, model read, bytes passed on.

It has what any gateway must do at the least, and none of what this project is about. uvloop, no access log, one session, no
cookies, no decompression: aiohttp as lean as its public API allows.
"""
import argparse

import aiohttp
import orjson
import uvloop
from aiohttp import web


class Passthrough:
    def __init__(self, upstream: str, key: str) -> None:
        self._target = upstream + "/chat/completions"
        self._expected = "Bearer " + key
        self._headers = {"Authorization": "Bearer up-key", "Content-Type": "application/json"}
        self._session: aiohttp.ClientSession | None = None

    async def session(self, app: web.Application):
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=120)
        self._session = aiohttp.ClientSession(
            connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False,
            skip_auto_headers=("User-Agent", "Accept-Encoding"))
        yield
        await self._session.close()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != self._expected:
            return web.json_response({"error": {"message": "unknown key", "type": "authentication_error"}}, status=401)
        body = await request.read()
        if not orjson.loads(body)["model"]:
            return web.json_response({"error": {"message": "no model", "type": "invalid_request_error"}}, status=400)
        async with self._session.post(self._target, data=body, headers=self._headers) as answer:
            kind = answer.headers.get("Content-Type", "application/json")
            if "event-stream" not in kind:
                return web.Response(body=await answer.read(), status=answer.status, headers={"Content-Type": kind})
            stream = web.StreamResponse(status=answer.status, headers={"Content-Type": kind, "Cache-Control": "no-cache"})
            await stream.prepare(request)
            async for data in answer.content.iter_any():
                await stream.write(data)
            await stream.write_eof()
            return stream


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--upstream", required=True, help="base URL, with its /v1")
    parser.add_argument("--key", default="bench-key")
    given = parser.parse_args()
    proxy = Passthrough(given.upstream.rstrip("/"), given.key)
    app = web.Application(client_max_size=32 << 20)
    app.cleanup_ctx.append(proxy.session)
    app.router.add_post("/v1/chat/completions", proxy.handle)
    uvloop.install()
    web.run_app(app, host="127.0.0.1", port=given.port, access_log=None, print=None)


if __name__ == "__main__":
    main()
