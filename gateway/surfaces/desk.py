"""What stands behind every door? The current ground, and how a call and its client are made of an HTTP request."""
import re
from collections.abc import Mapping

from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway import __version__
from gateway.core.agents import family
from gateway.core.call import Call
from gateway.core.errors import GatewayError
from gateway.core.ids import request_id
from gateway.core.trace import begun
from gateway.observe.meter import Meter
from gateway.pipeline.captured import CapturingClient
from gateway.pipeline.deliver import Client
from gateway.pipeline.ground import Ground
from gateway.surfaces.routes import Door
from gateway.wire import WIRES

_ID = re.compile(r"[\x21-\x7e]{1,128}")
_NAMES = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z, \t-]{1,4096}")
EXPOSED = ("X-Request-ID, request-id, X-Routed-Via, X-Fallback-Attempts, X-Fallback-Trail, X-Fallback-Detail, X-Gateway-Decision, "
           "X-FreeLLM-Cache, Retry-After, retry-after-ms, "
           "x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests")


class Desk:
    """Holds the ground that new requests take; a reload swaps it."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.started = ground.clock.now()
        self.version = __version__
        self.meter: Meter | None = None              # where somebody counts

    def call(self, http: BaseRequest, door: Door, ground: Ground) -> tuple[Call, Client]:
        given = http.headers.get("X-Request-ID")
        name = given if given is not None and _ID.fullmatch(given) else request_id()
        call = Call(id=name, surface=door.name, wire=door.wire, operation=door.operation, started=ground.clock.now(),
                    wall=ground.clock.wall(), client=family(http.headers.get("User-Agent", "")))
        if ground.traced:
            call.trace = begun(http.headers.get("traceparent", ""), http.headers.get("tracestate", ""), ground.snapshot.otel.sample)
        headers = {"Server": "gateway", "X-Request-ID": name, "request-id": name}
        if ground.snapshot.server.cors_allow_origins:
            headers.update(cors(http.headers, ground.snapshot.server.cors_allow_origins))
        query_key = http.rel_url.query.get("key") if door.query_key else None
        if not ground.snapshot.log.capture_bodies:
            return call, Client(http, call, WIRES[door.wire], headers, query_key)
        client = CapturingClient(http, call, WIRES[door.wire], headers, query_key)
        client.capture(ground.snapshot.secrets)
        return call, client

    async def refuse(self, http: BaseRequest, door: Door, error: GatewayError,
                     more: Mapping[str, str] | None = None) -> web.StreamResponse:
        """Answer a request that has no handler, in the shape of the surface it was meant for."""
        call, client = self.call(http, door, self.ground)
        client.route_headers = more
        await client.fail(error)
        return client.response  # type: ignore[return-value]


def cors(headers: Mapping[str, str], allowed: tuple[str, ...]) -> dict[str, str]:
    """CORS headers for an allowed origin; with a list of origins the answer depends on the caller's."""
    origin = headers.get("Origin")
    made = {} if "*" in allowed else {"Vary": "Origin"}
    if origin is not None and ("*" in allowed or origin in allowed):
        made["Access-Control-Allow-Origin"] = "*" if "*" in allowed else origin
        made["Access-Control-Expose-Headers"] = EXPOSED
    return made


def preflight(headers: Mapping[str, str], allowed: tuple[str, ...], methods: list[str]) -> dict[str, str]:
    """The answer to an OPTIONS request of a browser."""
    made = cors(headers, allowed)
    if "Access-Control-Allow-Origin" in made:
        made["Access-Control-Allow-Methods"] = ", ".join([*methods, "OPTIONS"])
        wanted = headers.get("Access-Control-Request-Headers", "")
        made["Access-Control-Allow-Headers"] = wanted if _NAMES.fullmatch(wanted) else "authorization, content-type"
        made["Access-Control-Max-Age"] = "600"
    return made
