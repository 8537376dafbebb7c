"""What does a handler of the API know? Who asks and what, already checked; and how its answer gets out."""
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec
from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway.admin.errand import Ask as Ask
from gateway.admin.errand import Done as Done
from gateway.admin.errand import Errand as Errand
from gateway.admin.errand import Facts as Facts
from gateway.admin.errand import Nothing as Nothing
from gateway.admin.gate import How, enter
from gateway.admin.office import Office
from gateway.core.errors import GatewayError, bad_request

Handler = Callable[["Visit"], Awaitable[Any]]
S = TypeVar("S")


class Route(msgspec.Struct, frozen=True):
    """One path of the API. ``open``: for callers that are not signed in. ``stream``: the answer is no single JSON."""
    method: str
    path: str                                        # below /admin/api; {name} is one segment, {name:path} the rest
    handler: Handler
    says: str
    answer: type[Any]
    query: type[Ask] = Nothing
    body: type[Any] | None = None
    open: bool = False
    raw: bool = False                                # the handler reads the body itself
    stream: str = ""                                 # the content type of such an answer


class Visit(Errand):
    """One request for the API."""

    __slots__ = ("cookies", "how", "http", "route")

    def __init__(self, http: BaseRequest, route: Route, params: Mapping[str, str], office: Office, how: How | None, name: str) -> None:
        super().__init__(office, how or "nobody", name, params=params)
        self.http = http
        self.route = route
        self.how = how
        self.cookies: list[str] = []                 # Set-Cookie lines of the answer

    def welcome(self) -> bool:
        """May the caller still be here? For answers that go on: a session may end meanwhile."""
        office = self.office
        try:
            enter(self.http, office.settings, office.sessions, office.ground.clock.now(), office.ground.snapshot.server.trust_proxy,
                  active=False)
        except GatewayError:
            return False
        return office.settings.enabled


def queried(http: BaseRequest, kind: type[S]) -> S:
    """The query string as a struct. Raises bad_request naming the parameter."""
    given: dict[str, str] = {}
    for name, value in http.rel_url.query.items():
        if name in given:
            raise bad_request(f"The parameter {name[:60]!r} stands there twice.", name[:60])
        given[name] = value
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise refused(error) from None


def decoded(raw: bytes, kind: type[S]) -> S:
    """The body as a struct. Raises bad_request naming the field."""
    try:
        return msgspec.json.decode(raw or b"{}", type=kind)
    except msgspec.ValidationError as error:
        raise refused(error) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise bad_request("The body is not valid JSON.") from None


def refused(error: msgspec.ValidationError) -> GatewayError:
    what, _, where = str(error).partition(" - at `$")
    return bad_request(what[:300], where.rstrip("`").lstrip(".")[:120] or None)


def json(value: Any, status: int = 200) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(value), content_type="application/json")
