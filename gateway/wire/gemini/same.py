"""What of a Gemini client's body has to change for an upstream that speaks the format too? Nearly always nothing at all."""
from typing import Final

import msgspec

from gateway.core.request import Request
from gateway.wire import splice
from gateway.wire.base import Outbound
from gateway.wire.gemini.build import adapted
from gateway.wire.gemini.schema import Json
from gateway.wire.lenient import dump

_CONFIGS: Final = ("generationConfig", "generation_config")


def rebuild(request: Request, to: Outbound) -> bytes:
    """The body: the model and the way to answer stand in the path, so the caller's own bytes go on as they are."""
    body: Json = request.body
    config: Json = body.get("generationConfig") or {}
    too_much = to.max_output is not None and request.max_tokens is not None and request.max_tokens > to.max_output
    refused = any(name in body or name in config for name in (*to.drop_params, *to.rename_params))
    if request.operation == "count_tokens":
        return request.raw
    if refused:
        # Names in the client's spelling would be missed: the body is written anew, in Google's.
        body = adapted({**body, "generationConfig": dict(config)}, to)
        if too_much:
            body["generationConfig"]["maxOutputTokens"] = to.max_output
        return dump(body)
    if too_much:
        top: dict[str, bytes | msgspec.Raw] = {name: value for name, value in splice.fields(request.raw).items()
                                               if name not in _CONFIGS}
        top["generationConfig"] = dump({**config, "maxOutputTokens": to.max_output})
        return splice.join(top)
    return request.raw
