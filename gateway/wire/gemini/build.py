"""How is a request of any other format said to a Gemini upstream? Conversation -> body.

Flags of a target: ``call_ids`` (it knows ids of calls), ``json_schema`` (it takes JSON Schema as it is), ``server_tools``
(it may search the web for a client that asked another provider's server to).
"""
from typing import Any, Final

from gateway.core import request as rq
from gateway.core.errors import GatewayError
from gateway.wire.base import Outbound
from gateway.wire.gemini import openapi, thinking
from gateway.wire.gemini.schema import NAME, Json, safe_name
from gateway.wire.gemini.turns import OPENING, SYSTEM, Contents, unsupported
from gateway.wire.lenient import dump

MAX_STOPS: Final = 5
_SAMPLING: Final = {"temperature": "temperature", "topP": "top_p", "topK": "top_k", "seed": "seed",
                    "presencePenalty": "presence_penalty", "frequencyPenalty": "frequency_penalty"}
_MODES: Final = {"auto": "AUTO", "none": "NONE", "required": "ANY", "named": "ANY"}
_SEARCH: Final = ("web_search", "google_search", "googleSearch")
_CUSTOM: Final[Json] = {"type": "OBJECT", "properties": {"input": {"type": "STRING"}}, "required": ["input"]}


def other_format(request: rq.Request, to: Outbound) -> bytes:
    """The body for a Gemini upstream of a request in any other format."""
    if request.conversation is None:
        raise GatewayError("internal", "The request was not opened before it was built.")
    return dump(adapted(build(request.conversation, to), to))


def adapted(body: Json, to: Outbound) -> Json:
    """Without what the target refuses; the names may be of the body or of its generationConfig."""
    for names in (body, body.get("generationConfig") or {}):
        for old, new in to.rename_params.items():
            if old in names:
                names.setdefault(new, names.pop(old))
        for name in to.drop_params:
            names.pop(name, None)
    return body


def build(talk: rq.Conversation, to: Outbound) -> Json:
    """Raises unsupported for what this format cannot say."""
    if (talk.sampling.n or 1) > 1:
        raise unsupported("n", "this model's API gives one answer a request.")
    tools, functions = _tools(talk, to)
    system = [{"text": part.text} for message in talk.messages if message.role in SYSTEM for part in message.parts
              if isinstance(part, rq.Text) and part.text.strip()]
    contents = Contents(talk, to).turns
    if not contents:
        # Instructions alone are no conversation to this API: they become what the user says.
        contents, system = [{"role": "user", "parts": system or [{"text": OPENING}]}], []
    config = _config(talk, to)
    if talk.format is not None:
        if functions and thinking.generation(to.model) < 3:
            # A response type beside functions is refused: https://ai.google.dev/gemini-api/docs/structured-output
            system.append({"text": _instruction(talk.format)})
        else:
            config |= _format(talk.format, to)
    if system and "gemma" in to.model.lower():
        contents[0]["parts"] = [*system, *contents[0]["parts"]]      # Gemma refuses systemInstruction
        system = []
    body: Json = {"contents": contents}
    if system:
        body["systemInstruction"] = {"parts": system}
    if tools:
        body["tools"] = tools
        if functions and (choice := _choice(talk, functions)):
            body["toolConfig"] = {"functionCallingConfig": choice}
    own = dict(talk.extra.get(NAME, {}))
    config |= own.pop("generationConfig", {})
    if config:
        body["generationConfig"] = config
    return body | own


def _config(talk: rq.Conversation, to: Outbound) -> Json:
    said = talk.sampling
    out: Json = {name: value for name, ours in _SAMPLING.items() if (value := getattr(said, ours)) is not None}
    if "temperature" in out:
        out["temperature"] = min(max(out["temperature"], 0), 2)
    if out.get("topK", 1) <= 0:
        del out["topK"]
    if said.max_tokens is not None:
        out["maxOutputTokens"] = min(said.max_tokens, to.max_output) if to.max_output else said.max_tokens
    if stop := [word for word in said.stop or () if word]:
        out["stopSequences"] = stop[:MAX_STOPS]
    if said.logprobs:
        out["responseLogprobs"] = True
        if said.top_logprobs:
            out["logprobs"] = said.top_logprobs
    if thought := thinking.config(talk, to):
        out["thinkingConfig"] = thought
    return out


# ---------------------------------------------------------------- what the answer must look like
def _format(wanted: rq.Format, to: Outbound) -> Json:
    out: Json = {"responseMimeType": "application/json"}
    if wanted.schema:
        if "json_schema" in to.flags:
            out["responseJsonSchema"] = wanted.schema
        else:
            out["responseSchema"] = openapi.clean(wanted.schema)
    return out


def _instruction(wanted: rq.Format) -> str:
    if wanted.schema is None:
        return "When you answer without calling a function, answer with one valid JSON object and nothing else."
    schema = dump(wanted.schema).decode()
    return ("When you answer without calling a function, answer with one JSON value that is valid under the JSON Schema below, "
            f"and nothing else: no prose, no code fence.\n```json\n{schema}\n```")


# ---------------------------------------------------------------- tools
def _tools(talk: rq.Conversation, to: Outbound) -> tuple[list[Json], dict[str, str]]:
    """The tools, and the functions among them: the client's name -> the name said to Google."""
    declared: list[Json] = []
    names: dict[str, str] = {}
    served: list[Json] = []
    for tool in talk.tools:
        if tool.kind == "server":
            served += [payload for payload in [_server_tool(tool, to)] if payload is not None and payload not in served]
        elif tool.name not in names:
            names[tool.name] = safe_name(tool.name)
            declared.append(_function(tool, to))
    if not declared:
        return served, {}
    # Beside functions a server-run tool is refused by most models; the client's own come first.
    return [{"functionDeclarations": declared}, *(served if thinking.generation(to.model) >= 3 else [])], names


def _function(tool: rq.Tool, to: Outbound) -> Json:
    out: Json = {"name": safe_name(tool.name)}
    description = tool.description
    if tool.kind == "custom":
        grammar = (tool.payload or {}).get("format")
        grammar = grammar.get("definition") if isinstance(grammar, dict) else None
        description += f"\n\nThe string `input` must follow this grammar:\n{grammar}" if grammar else ""
    if description:
        out["description"] = description
    if tool.kind == "custom":
        out["parameters"] = _CUSTOM
    elif "json_schema" in to.flags and tool.parameters:
        out["parametersJsonSchema"] = tool.parameters
    elif (schema := openapi.parameters(tool.parameters)) is not None:
        out["parameters"] = schema
    return out


def _server_tool(tool: rq.Tool, to: Outbound) -> Json | None:
    """Another provider's own tools cannot run here; a search for the web can, if the operator allows that."""
    if tool.extra.get("wire") == NAME:
        return tool.payload
    kind = str((tool.payload or {}).get("type") or tool.name)
    return {"googleSearch": {}} if kind.startswith(_SEARCH) and "server_tools" in to.flags else None


def _choice(talk: rq.Conversation, functions: dict[str, str]) -> Json:
    said = talk.tool_choice
    if said is None:
        return {}
    out: dict[str, Any] = {"mode": _MODES[said.mode]}
    if said.mode == "named" and said.name in functions:
        out["allowedFunctionNames"] = [functions[said.name]]
    return out
