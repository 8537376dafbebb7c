"""What did a Responses client say, in neutral form? For upstreams that speak another format.

Items are single things; a turn is several of them: an assistant's thinking, words and calls up to the next result are one turn.
"""
from typing import Any, Final

from gateway.core import request as rq
from gateway.wire.lenient import dump
from gateway.wire.openai_chat.conversation import AUDIO, EFFORTS, data_url
from gateway.wire.openai_responses.items import as_text
from gateway.wire.openai_responses.request import IMAGES, TEXTS
from gateway.wire.openai_responses.schema import CALLS, OUTPUTS, SHELL, WIRE, Asked, Json, Origin, texts_of
from gateway.wire.openai_responses.tools import flat, offered

_PLACED: Final = frozenset({
    "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options", "store",
    "max_output_tokens", "temperature", "top_p", "reasoning", "text", "response_format", "user", "metadata", "prompt_cache_key",
    "service_tier", "include", "previous_response_id", "background", "truncation", "client_metadata",
})


def open_responses(request: rq.Request) -> rq.Conversation:
    """The dialogue of a parsed request."""
    asked: Asked = request.body
    doc = asked.doc
    extra = {key: value for key, value in doc.items() if key not in _PLACED and value is not None}
    tools = offered(asked)
    return rq.Conversation(
        messages=_Turns(asked.origins).read(doc), tools=tools, tool_choice=request.tool_choice if tools else None,
        sampling=rq.Sampling(max_tokens=request.max_tokens, temperature=doc.get("temperature"), top_p=doc.get("top_p")),
        thought=_thought(doc), format=request.format, user=str(doc.get("user") or doc.get("safety_identifier") or ""),
        metadata=doc.get("metadata"), cache_key=doc.get("prompt_cache_key") or "", service_tier=str(doc.get("service_tier") or ""),
        extra={WIRE: extra} if extra else {})


def _thought(doc: Json) -> rq.Thought | None:
    reasoning = doc.get("reasoning") or {}
    effort, summary = reasoning.get("effort"), reasoning.get("summary") or reasoning.get("generate_summary")
    known = EFFORTS.get(effort.lower()) if isinstance(effort, str) else None
    if known is None and summary is None:
        return None
    return rq.Thought(effort=known, include=True if summary else None, summary=summary if isinstance(summary, str) else None)


class _Turns:
    """Items, gathered into turns. Calls get ids that no other call of the dialogue has."""

    def __init__(self, origins: dict[str, Origin]) -> None:
        self._names = {(origin.namespace, origin.name): name for name, origin in origins.items()}
        self._out: list[rq.Message] = []
        self._waiting: dict[str, list[rq.Call]] = {}         # the client's call id -> its calls without a result
        self._used: set[str] = set()

    def read(self, doc: Json) -> list[rq.Message]:
        instructions = doc.get("instructions")
        if isinstance(instructions, str) and instructions.strip():
            self._out.append(rq.Message("system", [rq.Text(instructions)]))
        given = doc.get("input")
        if isinstance(instructions, list):
            for item in instructions:
                self._item(item)
        if isinstance(given, str):
            self._out.append(rq.Message("user", [rq.Text(given)]))
        else:
            for item in given or ():
                self._item(item)
        return self._out

    def _item(self, item: Json) -> None:
        kind = item.get("type") or "message"
        if kind == "message":
            parts = content_of(item.get("content"))
            if item["role"] == "assistant":
                self._say(parts)
            elif parts:
                self._out.append(rq.Message(item["role"], parts))
        elif kind == "reasoning":
            self._say([_thinking(item)])
        elif kind in CALLS:
            self._call(item, kind)
        elif kind == "local_shell_call":
            self._called(rq.Call(str(item.get("call_id") or item.get("id")), SHELL, as_text(item.get("action"), kind)))
        elif kind in OUTPUTS:
            self._result(item)

    def _say(self, parts: list[rq.Part]) -> None:
        """More of the assistant's turn, or a new one."""
        if not parts:
            return
        if self._out and self._out[-1].role == "assistant":
            self._out[-1].parts.extend(parts)
        else:
            self._out.append(rq.Message("assistant", parts))

    def _call(self, item: Json, kind: str) -> None:
        name, namespace = item["name"], str(item.get("namespace") or "")
        said = item.get("input" if kind == "custom_tool_call" else "arguments")
        text = said if isinstance(said, str) else as_text(said, kind)
        if kind == "custom_tool_call":
            text = dump({"input": text}).decode()
        known = self._names.get((namespace, name)) or flat(name, namespace)
        self._called(rq.Call(item["call_id"], known, text or "{}"))

    def _called(self, call: rq.Call) -> None:
        self._waiting.setdefault(call.id, []).append(call)
        wanted, n = call.id, 1
        while call.id in self._used:
            n += 1
            call.id = f"{wanted}_{n}"
        self._used.add(call.id)
        self._say([call])

    def _result(self, item: Json) -> None:
        call_id = item.get("call_id") or item.get("id") or ""
        output = item.get("output")
        parts = content_of(output if not isinstance(output, dict) else dump(output).decode())
        waiting = self._waiting.get(call_id)
        call = waiting.pop(0) if waiting else None
        result = rq.Result(call.id if call else call_id, parts, call.name if call else "")
        if self._out and self._out[-1].role == "tool":
            self._out[-1].parts.append(result)
        else:
            self._out.append(rq.Message("tool", [result]))


def _thinking(item: Json) -> rq.Part:
    text = "\n\n".join(texts_of(item.get("summary"))) or "".join(texts_of(item.get("content")))
    return rq.Thinking(text, owner=WIRE, extra={WIRE: item})


# ---------------------------------------------------------------- parts
def content_of(content: Any) -> list[rq.Part]:
    """A string or a list of parts."""
    if isinstance(content, str):
        return [rq.Text(content)] if content else []
    return [part for given in content or () if (part := _part(given)) is not None]


def _part(part: str | Json) -> rq.Part | None:
    if isinstance(part, str):
        return rq.Text(part)
    kind = part["type"]
    if kind in TEXTS:
        return rq.Text(part["text"]) if part["text"] else None
    if kind == "refusal":
        return rq.Refusal(str(part.get("refusal") or ""))
    if kind in IMAGES:
        return _image(part)
    if kind == "input_audio":
        audio: Any = part.get("input_audio") or part
        form = str(audio.get("format") or "wav")
        return rq.Document(media_type=AUDIO.get(form, "audio/" + form), data=str(audio.get("data") or ""))
    if kind == "input_file":
        return _file(part)
    return rq.Opaque(WIRE, kind, part)


def _image(part: Json) -> rq.Image:
    given: Any = part.get("image_url")
    detail: Any = part.get("detail")
    if isinstance(given, dict):
        given, detail = given.get("url"), given.get("detail") or detail
    detail = detail if isinstance(detail, str) else None
    if not isinstance(given, str):
        return rq.Image(file_id=str(part.get("file_id") or ""), detail=detail)
    media, data = data_url(given)
    return rq.Image(data=data, media_type=media, detail=detail) if data else rq.Image(url=given, detail=detail)


def _file(part: Json) -> rq.Document:
    given = str(part.get("file_data") or "")
    media, data = data_url(given)
    return rq.Document(media_type=media, data=data or given, url=str(part.get("file_url") or ""),
                       file_id=str(part.get("file_id") or ""), title=str(part.get("filename") or ""))
