"""What does a Gemini request say, in neutral form? For upstreams of another format."""
from collections import deque
from typing import Any, Final

from gateway.core import request as rq
from gateway.wire.gemini.request import declarations, format_of, listed, schema_of
from gateway.wire.gemini.schema import NAME, Json, arguments, plain_base64
from gateway.wire.lenient import dump

# Fields that have a neutral place; the others are kept for who understands them.
_PLACED: Final = frozenset({"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "model"})
_CONFIG: Final = {"temperature": "temperature", "topP": "top_p", "seed": "seed", "presencePenalty": "presence_penalty",
                  "frequencyPenalty": "frequency_penalty", "responseLogprobs": "logprobs", "logprobs": "top_logprobs"}
_PLACED_CONFIG: Final = frozenset({*_CONFIG, "topK", "maxOutputTokens", "stopSequences", "candidateCount", "thinkingConfig",
                                   "responseMimeType", "responseSchema", "responseJsonSchema"})
_LEVELS: Final = {"MINIMAL": "minimal", "LOW": "low", "MEDIUM": "medium", "HIGH": "high"}
_EMPTY_SCHEMA: Final[Json] = {"type": "object", "properties": {}}
_RESULT: Final = frozenset({"result", "output"})


def conversation(request: rq.Request) -> rq.Conversation:
    """The dialogue of a parsed request."""
    body: Json = request.body
    config: Json = body.get("generationConfig") or {}
    extra = {key: value for key, value in body.items() if key not in _PLACED and value is not None}
    rest = {key: value for key, value in config.items() if key not in _PLACED_CONFIG and value is not None}
    if rest:
        extra["generationConfig"] = rest
    return rq.Conversation(
        messages=_Dialogue(body).messages, tools=_tools(body), tool_choice=request.tool_choice,
        sampling=_sampling(config, request), thought=_thought(config.get("thinkingConfig") or {}), format=format_of(config),
        extra={NAME: extra} if extra else {})


def _sampling(config: Json, request: rq.Request) -> rq.Sampling:
    given: dict[str, Any] = {ours: config[name] for name, ours in _CONFIG.items() if config.get(name) is not None}
    top_k = config.get("topK")
    return rq.Sampling(max_tokens=request.max_tokens, top_k=int(top_k) if top_k is not None else None,
                       stop=config.get("stopSequences") or None, n=request.n if request.n > 1 else None, **given)


def _thought(config: Json) -> rq.Thought | None:
    """A level, or a budget: 0 is none, -1 as much as the model likes."""
    budget, level = config.get("thinkingBudget"), str(config.get("thinkingLevel") or "").upper()
    include = config.get("includeThoughts")
    include = include if isinstance(include, bool) else None
    if level in _LEVELS:
        return rq.Thought(effort=_LEVELS[level], include=include)
    if isinstance(budget, (int, float)) and budget >= 0:
        return rq.Thought(effort=None if budget else "none", budget_tokens=int(budget), include=include)
    return rq.Thought(include=True) if include else None


# ---------------------------------------------------------------- contents
class _Dialogue:
    """The turns. Calls are paired with their responses by id where both have one, else by name in their order."""

    def __init__(self, body: Json) -> None:
        self.messages: list[rq.Message] = []
        self._waiting: dict[str, deque[str]] = {}        # function -> ids of calls without an answer, oldest first
        self._n_orphans = 0
        system = body.get("systemInstruction")
        parts = self._parts(system.get("parts") if isinstance(system, dict) else system)
        if parts:
            self.messages.append(rq.Message("system", parts))
        for position, turn in enumerate(listed(body["contents"])):
            self._turn(turn, position)

    def _turn(self, turn: Json, position: int) -> None:
        parts = self._parts(turn.get("parts"), position)
        results: list[rq.Part] = [part for part in parts if isinstance(part, rq.Result)]
        rest = [part for part in parts if not isinstance(part, rq.Result)]
        if results:
            # Answers belong right behind the calls, whatever else was said in this turn.
            if self.messages and self.messages[-1].role == "tool":
                self.messages[-1].parts += results
            else:
                self.messages.append(rq.Message("tool", results))
        role = "assistant" if turn.get("role") == "model" else "user"
        if rest or role == "assistant":
            self.messages.append(rq.Message(role, rest))  # type: ignore[arg-type]

    def _parts(self, parts: Any, position: int = 0) -> list[rq.Part]:
        out: list[rq.Part] = []
        for n, part in enumerate(listed(parts)):
            made = rq.Text(part) if isinstance(part, str) else self._part(part, position, n)
            if made is not None:
                out.append(made)
        return out

    def _part(self, part: Json, position: int, n: int) -> rq.Part | None:
        signature = part.get("thoughtSignature") or ""
        if isinstance(call := part.get("functionCall"), dict):
            return self._call(call, signature, position, n)
        if isinstance(response := part.get("functionResponse"), dict):
            return self._result(response)
        if isinstance(file := part.get("inlineData"), dict):
            return _inline(file)
        if isinstance(file := part.get("fileData"), dict):
            return _file(file)
        if isinstance(text := part.get("text"), str):
            if part.get("thought"):
                return rq.Thinking(text, signature, owner=NAME)
            return rq.Text(text, extra={NAME: {"thoughtSignature": signature}} if signature else {}) if text else None
        kind = next((key for key in part if key not in ("thought", "thoughtSignature", "videoMetadata")), None)
        return rq.Opaque(NAME, kind, part) if kind is not None else None

    def _call(self, call: Json, signature: str, position: int, n: int) -> rq.Call:
        name = call["name"]
        made = str(call.get("id") or f"call_{position}_{n}")
        self._waiting.setdefault(name, deque()).append(made)
        return rq.Call(made, name, arguments(call.get("args")), signature=signature)

    def _result(self, response: Json) -> rq.Result:
        name, given = response["name"], response.get("id")
        waiting = self._waiting.get(name) or deque()
        if given and str(given) in waiting:
            waiting.remove(str(given))
            call_id = str(given)
        elif waiting:
            call_id = waiting.popleft()
        else:
            self._n_orphans += 1
            call_id = str(given or f"call_unasked_{self._n_orphans}")
        parts, failed = _said(response.get("response") or {})
        return rq.Result(call_id, [*parts, *self._parts(response.get("parts"))], name, failed)


def _said(response: Json) -> tuple[list[rq.Part], bool]:
    """The text of a function's response, and whether it is an error: it has those words for the two by convention."""
    if len(response) == 1:
        ((key, value),) = response.items()
        if key in _RESULT or key == "error":
            text = value if isinstance(value, str) else dump(value).decode()
            return ([rq.Text(text)] if text else []), key == "error"
    return ([rq.Text(dump(response).decode())] if response else []), False


def _inline(file: Json) -> rq.Part:
    media, data = str(file.get("mimeType") or ""), plain_base64(file["data"])
    if media.startswith("image/") or not media:
        return rq.Image(data=data, media_type=media or "image/png")
    return rq.Document(media, data, title=str(file.get("displayName") or ""))


def _file(file: Json) -> rq.Part:
    """An address that anybody can read, or a file that only Google can."""
    media, uri = str(file.get("mimeType") or ""), file["fileUri"]
    open_to_all = uri.startswith(("http://", "https://")) and "generativelanguage.googleapis.com/" not in uri
    place = {"url": uri} if open_to_all else {"file_id": uri}
    if media.startswith("image/"):
        return rq.Image(media_type=media, **place)
    return rq.Document(media, title=str(file.get("displayName") or ""), **place)


# ---------------------------------------------------------------- tools
def _tools(body: Json) -> list[rq.Tool]:
    out = [rq.Tool(function["name"], str(function.get("description") or ""), schema_of(function) or dict(_EMPTY_SCHEMA))
           for function in declarations(body)]
    for tool in listed(body.get("tools")):
        for name, value in tool.items():
            if name != "functionDeclarations" and value is not None:
                out.append(rq.Tool(name, kind="server", payload={name: value}, extra={"wire": NAME}))
    return out
