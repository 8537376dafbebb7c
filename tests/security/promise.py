"""Who may do what? Every path that the gateway serves, taken from its tables, and what is promised for each kind of them."""
import msgspec

from gateway.admin import files
from gateway.admin.routes import ROUTES as ADMIN
from gateway.mcp.door import DOORS as MCP
from gateway.surfaces.routes import ROUTES

# A path's kind by the name of its door. A new door is in no kind: test_every_path_is_promised_something fails until it is.
KINDS = {
    **dict.fromkeys(("chat", "completions", "responses", "response_tokens", "response", "response_deleted", "response_cancelled",
                     "messages", "count_tokens", "embeddings", "images", "speech", "transcriptions", "moderations", "rerank", "models",
                     "model", "gemini"), "client"),
    "ollama": "client",
    **dict.fromkeys(("livez", "readyz", "openapi"), "public"),
    **dict.fromkeys(("absent", "responses_socket"), "refusal"),      # says for everybody that it is not there
    "metrics": "metrics",
}
OPEN = {("GET", "/session"), ("POST", "/login"), ("POST", "/logout")}     # of the operator's API, for who is not signed in
TAILS = {"response": "resp_x", "response_deleted": "resp_x", "response_cancelled": "resp_x/cancel", "model": "m",
         "gemini": "m:generateContent"}


class Path(msgspec.Struct, frozen=True):
    """One thing to ask. ``shape``: whose errors; ``changes``: a browser could be made to do it; ``query_key``: ?key= counts."""
    kind: str
    method: str
    path: str
    shape: str
    changes: bool = False
    query_key: bool = False

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


def _doors() -> list[Path]:
    return [Path(KINDS.get(door.name, ""), door.method, door.path + (TAILS[door.name] if door.tail else ""), door.wire,
                 query_key=door.query_key) for door in ROUTES]


def _operator() -> list[Path]:
    out = []
    for route in ADMIN:
        path = route.path.replace("{id}", "x").replace("{name}", "x")
        assert "{" not in path, f"{route.path}: say in tests/security/promise.py what stands in its hole"
        kind = "entrance" if (route.method, route.path) in OPEN else "operator"
        out.append(Path(kind, route.method, "/admin/api" + path, "admin", changes=route.method != "GET"))
    return out


def _page() -> list[Path]:
    return [Path("page", "GET", path, "admin") for path in ("/admin", "/admin/", *(f"/admin/page/{name}" for name in files.found()))]


def paths() -> list[Path]:
    """Everything."""
    return [*_doors(), *_operator(), *_page(), *(Path("mcp", method, path, "mcp") for path, method in MCP.items())]


# ---------------------------------------------------------------- with keys, a password and a key of [admin]
# credential -> kind -> what it is answered: "in", or the status that refuses. Kinds that are not named: as "none" says.
_NONE = {"client": 401, "operator": 401, "entrance": "in", "page": "in", "mcp": 401, "metrics": 401, "public": "in", "refusal": "in"}
KEYED = {
    "none": {},
    "wrong": {"entrance": "in"},
    "revoked": {}, "expired": {}, "rotated": {}, "malformed": {},
    "bearer": {"client": "in", "metrics": "in", "mcp": 403},
    "x-api-key": {"client": "in", "metrics": "in", "mcp": 403},
    "x-goog-api-key": {"client": "in", "metrics": "in", "mcp": 403},
    "query": {},                                     # and "in" where a door takes it: see ``promised``
    "scoped": {"client": "in", "metrics": "in", "mcp": "in"},
    "admin": {"operator": "in", "mcp": "in", "metrics": "in"},
    "admin as x-api-key": {},
    "session": {"operator": "in"},
    "ended session": {}, "someone's cookie": {},
    "provider key": {}, "password": {}, "key's digest": {},
}


def promised(credential: str, path: Path, *, local: bool = True) -> int | str:
    """``local``: on this machine, where /metrics is open."""
    if credential == "query" and path.query_key:
        return "in"
    if local and path.kind == "metrics":
        return "in"
    return {**_NONE, **KEYED[credential]}[path.kind]


# ---------------------------------------------------------------- without any: open to this machine, and to nobody else
# who asks -> kind -> answer; "changes": of the operator's API. Kinds that are not named: "in".
_NOT_HERE = {"client": 403, "operator": 403, "page": 403, "mcp": 401, "metrics": 401}
_PAGE = {"client": 403, "changes": 403, "mcp": 403}
OPENED = {
    "a program here": {},
    "another machine": _NOT_HERE,
    "a rebound name": _NOT_HERE,
    "behind a proxy": _NOT_HERE, "behind a proxy, forged": _NOT_HERE, "behind a proxy, by x-real-ip": _NOT_HERE,
    "behind a proxy, by forwarded": _NOT_HERE,
    "a page elsewhere": _PAGE, "a sandboxed page": _PAGE, "a page of another site": _PAGE,
}
