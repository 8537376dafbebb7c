"""What can be asked of the API, for machines? OpenAPI 3.1, made from the table of routes and its structs."""
import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from gateway.admin.visit import Route, Visit

PREFIX: Final = "/admin/api"
REF: Final = "#/components/schemas/{name}"
ERROR: Final = {"type": "object", "required": ["error"], "properties": {"error": {
    "type": "object", "required": ["message", "type"], "properties": {
        "message": {"type": "string"}, "type": {"type": "string"}, "code": {"type": ["string", "null"]},
        "param": {"type": ["string", "null"]}}}}}
_HOLE: Final = re.compile(r"\{(\w+)(?::path)?\}")


def document(routes: Iterable[Route], version: str) -> dict[str, Any]:
    """The whole description."""
    listed = list(routes)
    kinds = [kind for route in listed for kind in (route.answer, route.query, route.body) if kind is not None]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=REF)
    by_kind = dict(zip(map(id, kinds), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in listed:
        paths.setdefault(PREFIX + _HOLE.sub(r"{\1}", route.path), {})[route.method.lower()] = _operation(route, by_kind, components)
    return {"openapi": "3.1.0",
            "info": {"title": "gateway: the operator's API", "version": version,
                     "description": "Sign in for a session cookie, or send `Authorization: Bearer` with the key of [admin]. "
                                    "Changes by cookie or from this machine also need the header `X-Gateway-Admin: 1`."},
            "paths": paths,
            "components": {"schemas": {**components, "Error": ERROR},
                           "securitySchemes": {"key": {"type": "http", "scheme": "bearer"},
                                               "session": {"type": "apiKey", "in": "cookie", "name": "gateway_admin"}}},
            "security": [{"key": []}, {"session": []}]}


def _operation(route: Route, by_kind: dict[int, Any], components: dict[str, Any]) -> dict[str, Any]:
    kind = route.stream or "application/json"
    schema = {"type": "string"} if route.stream else by_kind[id(route.answer)]
    told: dict[str, Any] = {
        "operationId": f"{route.method.lower()}{re.sub(r'[^a-z]+', '_', route.path)}".rstrip("_"),
        "summary": route.says, "parameters": [*_holes(route), *_parameters(route, by_kind, components)],
        "responses": {"200": {"description": "Done.", "content": {kind: {"schema": schema}}},
                      "default": {"description": "It was refused or failed.",
                                  "content": {"application/json": {"schema": {"$ref": REF.format(name="Error")}}}}}}
    if route.raw:
        told["requestBody"] = {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}
    if route.body is not None:
        told["requestBody"] = {"required": True, "content": {"application/json": {"schema": by_kind[id(route.body)]}}}
    if route.open:
        told["security"] = []
    return told


def _holes(route: Route) -> list[dict[str, Any]]:
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
            for name in _HOLE.findall(route.path)]


def _parameters(route: Route, by_kind: dict[int, Any], components: dict[str, Any]) -> list[dict[str, Any]]:
    schema = by_kind[id(route.query)]
    if "$ref" in schema:
        schema = components[schema["$ref"].rpartition("/")[2]]
    return [{"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": told,
             "description": told.get("description", "")} for name, told in schema.get("properties", {}).items()]


async def openapi(visit: Visit) -> dict[str, Any]:
    from gateway.admin.routes import ROUTES

    return document(ROUTES, visit.office.place.version)
