"""What does an Ollama client ask? Its body checked leniently, and the facts that routing, limits and the turn need."""
from typing import Final

import msgspec

from gateway.core.errors import GatewayError
from gateway.core.request import Format, Request
from gateway.wire.lenient import dump
from gateway.wire.ollama.schema import GENERATE, NAME, Body, Json
from gateway.wire.problems import decode, invalid

_body = msgspec.json.Decoder(Body)
ROLES: Final = frozenset({"system", "user", "assistant", "tool", "developer"})
EFFORTS: Final = frozenset({"low", "medium", "high"})


def parse(raw: bytes, operation: str) -> Request:
    """Raises bad_request with the path of the field."""
    body, raw = decode(raw, _body)
    if not body.model:
        raise invalid("model", "this field is required")
    messages = body.messages or []
    for i, message in enumerate(messages):
        if message.role not in ROLES:
            raise invalid(f"messages.{i}.role", "expected system, user, assistant or tool")
    if isinstance(body.think, str) and body.think not in EFFORTS:
        raise invalid("think", "expected true, false, 'low', 'medium' or 'high'")
    limit = body.options.num_predict if body.options is not None else None
    return Request(
        wire=NAME, raw=raw, body=body, model=body.model, stream=body.stream is not False, tools=_tools(body),
        format=format_of(body), max_tokens=limit if limit is not None and limit > 0 else None, chars=_chars(body),
        images=sum([len(message.images or ()) for message in messages]) + len(body.images or ()), include_usage=True,
        operation=operation)


def probe(request: Request) -> bool:
    """Nothing to answer: the client only wants the model to be loaded (or unloaded, by ``keep_alive`` 0)."""
    body: Body = request.body
    return not (body.prompt or body.suffix if request.operation == GENERATE else body.messages)


def function_of(tool: Json, i: int) -> Json:
    """The declaration within a tool."""
    function = tool.get("function", tool)
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str) or not name:
        raise invalid(f"tools.{i}.function.name", "this field is required")
    return dict(function)


def _tools(body: Body) -> dict[str, Json | None]:
    found: dict[str, Json | None] = {}
    for i, tool in enumerate(body.tools or ()):
        function = function_of(tool, i)
        parameters = function.get("parameters")
        found[function["name"]] = parameters if isinstance(parameters, dict) else None
    return found


def format_of(body: Body) -> Format | None:
    if isinstance(body.format, dict):
        return Format(kind="json_schema", schema=body.format, strict=True)
    if body.format == "json":
        return Format(kind="json_object")
    if body.format:
        raise GatewayError("bad_request", "Invalid request: format: expected 'json' or a JSON schema.", param="format")
    return None


def _chars(body: Body) -> int:
    total = len(body.prompt or "") + len(body.system or "") + len(body.suffix or "")
    for message in body.messages or ():
        total += len(message.content or "") + len(message.thinking or "")
        total += sum([len(dump(call.function.arguments)) for call in message.tool_calls or ()])
    return total + (len(dump(body.tools)) if body.tools else 0)
