"""How is a request below /admin answered? The page's files, or the API: checked, decoded, handled, and always in JSON."""
import asyncio
import logging
import re
from typing import Final
from urllib.parse import unquote

import msgspec
from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway.admin import files, gate
from gateway.admin.office import Office
from gateway.admin.routes import ROUTES
from gateway.admin.visit import Route, Visit, decoded, json, queried
from gateway.config.problems import ConfigError
from gateway.core.errors import GatewayError
from gateway.core.ids import request_id

log = logging.getLogger("gateway.admin")

API: Final = "/admin/api"
UPLOAD_S: Final = 30.0
_ID: Final = re.compile(r"[\x21-\x7e]{1,128}")
_HOLE: Final = re.compile(r"\\\{(\w+)(:path)?\\\}")
HEADERS: Final = {
    "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Server": "gateway",
}


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(_HOLE.sub(lambda hole: f"(?P<{hole[1]}>{'.+' if hole[2] else '[^/]+'})", re.escape(path)))


_EXACT: dict[str, dict[str, Route]] = {}
_HOLES: dict[str, tuple[re.Pattern[str], dict[str, Route]]] = {}
for _route in ROUTES:
    if "{" in _route.path:
        _HOLES.setdefault(_route.path, (_pattern(_route.path), {}))[1][_route.method] = _route
    else:
        _EXACT.setdefault(_route.path, {})[_route.method] = _route


def find(path: str) -> tuple[dict[str, Route], dict[str, str]]:
    """(the routes at this path by method, what stands in its holes)."""
    if path in _EXACT:
        return _EXACT[path], {}
    for pattern, routes in _HOLES.values():
        found = pattern.fullmatch(path)
        if found is not None:
            return routes, {name: unquote(value) for name, value in found.groupdict().items()}
    return {}, {}


async def answer(http: BaseRequest, office: Office) -> web.StreamResponse:
    """Everything below /admin."""
    path = http.rel_url.raw_path
    given = http.headers.get("X-Request-ID", "")
    name = given if _ID.fullmatch(given) else request_id()
    response: web.StreamResponse
    try:
        if not office.settings.enabled:
            raise GatewayError("not_found", "The operator's side is switched off ([admin] enabled).")
        if path == API or path.startswith(API + "/"):
            response = await _api(http, path[len(API):], office, name)
        else:
            response = await files.answer(http, path, office)
    except GatewayError as error:
        response = told(error)
    except ConfigError as error:
        response = told(_problems(error))
    except (asyncio.CancelledError, ConnectionError):
        raise
    except Exception:
        log.exception("%s %s failed inside the gateway", http.method, path[:200])
        response = told(GatewayError("internal", "The gateway failed on this request; its log has the details."))
    if not response.prepared:
        dress(response, name)
    return response


def dress(response: web.StreamResponse, name: str) -> None:
    """The headers of every answer."""
    for header, value in HEADERS.items():
        response.headers.setdefault(header, value)
    response.headers["X-Request-ID"] = response.headers["request-id"] = name


async def _api(http: BaseRequest, path: str, office: Office, name: str) -> web.StreamResponse:
    routes, params = find(path)
    if not routes:
        raise GatewayError("not_found", f"There is no {path[:200]!r} here; /admin/api/openapi.json lists what there is.")
    method = "GET" if http.method == "HEAD" else http.method
    route = routes.get(method)
    if route is None:
        allowed = ", ".join(sorted(routes))
        response = told(GatewayError("method_not_allowed", f"{http.method[:20]} is not possible here; use {allowed}."))
        response.headers["Allow"] = allowed
        return response
    visit = Visit(http, route, params, office, _enter(http, route, office), name)
    if method not in gate.SAFE and visit.how != "key":
        gate.meant(http)
    visit.query = queried(http, route.query)
    if route.body is not None:
        visit.body = decoded(await body(http), route.body)
    value = await route.handler(visit)
    answered: web.StreamResponse = value if isinstance(value, web.StreamResponse) else json(value)
    if not answered.prepared:
        for cookie in visit.cookies:
            answered.headers.add("Set-Cookie", cookie)
    return answered


def _enter(http: BaseRequest, route: Route, office: Office) -> gate.How | None:
    ground = office.ground
    try:
        return gate.enter(http, office.settings, office.sessions, ground.clock.now(), ground.snapshot.server.trust_proxy)
    except GatewayError:
        if route.open:
            return None
        raise


async def body(http: BaseRequest) -> bytes:
    """At most a megabyte of JSON, uncompressed. Raises unsupported_media_type, body_too_large or bad_request."""
    kind = http.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if http.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise GatewayError("unsupported_media_type", "Send the body uncompressed.", param="content-encoding")
    try:
        async with asyncio.timeout(UPLOAD_S):
            raw = await http.read()
    except web.HTTPRequestEntityTooLarge:
        raise GatewayError("body_too_large", "The body is larger than a megabyte.") from None
    except TimeoutError:
        raise GatewayError("bad_request", f"The body did not come within {UPLOAD_S:g} s.", status=408) from None
    except (web.RequestPayloadError, ValueError):
        raise GatewayError("bad_request", "The body was cut off or is not framed properly.") from None
    if raw and kind != "application/json":
        raise GatewayError("unsupported_media_type", "Send the body with 'Content-Type: application/json'.", param="content-type")
    return raw


def _problems(error: ConfigError) -> GatewayError:
    """All that is wrong, and the first of it in words."""
    path, message = error.problems[0]
    return GatewayError("bad_request", f"{path}: {message}" if path else message, param=path or None,
                        extra={"problems": [{"path": where, "message": what} for where, what in error.problems]})


def told(error: GatewayError) -> web.Response:
    """A failure in JSON; times to wait as headers too."""
    said = {"message": error.message, "type": error.type, "code": error.code, "param": error.param, **(error.extra or {})}
    response = web.Response(status=error.status, body=msgspec.json.encode({"error": said}), content_type="application/json")
    if error.retry_after_s is not None:
        response.headers["Retry-After"] = str(max(1, -int(-error.retry_after_s // 1)))
    if error.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response
