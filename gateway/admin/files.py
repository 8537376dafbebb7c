"""Which files make the page? What lies in page/ is read once and served as it is; nothing else can be asked for.

Third-party modules (page/vendor) come from the npm registry when the package is set up or built; without them the page shows
tables where it would draw charts.
"""
import asyncio
import hashlib
from functools import cache
from pathlib import Path
from typing import Final

import msgspec
from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway.admin import gate
from gateway.admin.office import Office
from gateway.core.errors import GatewayError

FOLDER: Final = Path(__file__).parent / "page"
TYPES: Final = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
MAX_BYTES: Final = 1 << 20
POLICY: Final = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
                 "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


class File(msgspec.Struct, frozen=True):
    """One file, as it is sent."""
    body: bytes
    type: str
    tag: str


@cache
def found(folder: Path = FOLDER) -> dict[str, File]:
    """Every file by its path below /admin/page/."""
    out: dict[str, File] = {}
    for path in sorted(folder.rglob("*")):
        kind = TYPES.get(path.suffix)
        if kind is None or not path.is_file() or path.stat().st_size > MAX_BYTES:
            continue
        body = path.read_bytes()
        out[path.relative_to(folder).as_posix()] = File(body, kind, f'"{hashlib.sha256(body).hexdigest()[:20]}"')
    return out


async def answer(http: BaseRequest, path: str, office: Office) -> web.StreamResponse:
    """The page itself at /admin, its files below /admin/page/. They hold no secret; who may not use them gets told what to do."""
    if http.method not in gate.SAFE:
        raise GatewayError("method_not_allowed", "Only GET is possible here.")
    if not office.settings.password_hash and not gate.here(http, office.ground.snapshot.server.trust_proxy):
        raise GatewayError("forbidden", "Without a password this page is for this machine only: set admin.password_hash "
                           "(`gateway admin-password` makes it).", code="loopback_only")
    files = await asyncio.to_thread(found)
    file = files.get("index.html") if path in ("/admin", "/admin/") else files.get(path.removeprefix("/admin/page/")) \
        if path.startswith("/admin/page/") else None
    if file is None:
        raise GatewayError("not_found", "There is no such file.")
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache", "ETag": file.tag}
    if http.headers.get("If-None-Match") == file.tag:
        return web.Response(status=304, headers=headers)
    return web.Response(body=file.body, content_type=file.type, charset="utf-8", headers=headers)
