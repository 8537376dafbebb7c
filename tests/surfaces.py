"""Every surface that generates: how it is asked, and what it said, whether whole or as a stream."""
import json
from collections.abc import Callable
from typing import Any

import msgspec

from tests.talk import Answer, ask

SAY = "hi there"


class Said(msgspec.Struct):
    """An answer in no format: ``ended`` is a clean end, ``error`` what a client would be told of a failure."""
    text: str = ""
    ended: bool = False
    error: str = ""


class Surface(msgspec.Struct, frozen=True):
    name: str
    path: str
    streamed: str                                    # path of a stream
    body: dict[str, Any]
    read: Callable[[Said, dict[str, Any]], None]     # one document or frame into what was said
    flag: bool = True                                # "stream" is a field of the body
    done: bool = False                               # [DONE] belongs to a clean end

    async def ask(self, base_url: str, model: str, stream: bool, *, headers: Any = None) -> Answer:
        body = dict(self.body)
        if self.flag:
            body |= {"stream": stream, "model": model}
        path = (self.streamed if stream else self.path).replace("{model}", model)
        return await ask(base_url, body, path=path, headers=headers)

    def said(self, answer: Answer, stream: bool) -> Said:
        said = Said()
        documents = frames(answer.body) if stream and answer.status == 200 else [json.loads(answer.body)]
        for document in documents:
            self.read(said, document)
        if self.done and stream and answer.status == 200 and not said.error:
            said.ended = said.ended and answer.done == 1
        return said


def frames(body: bytes) -> list[Any]:
    """Documents of server-sent events or of lines; comments and [DONE] are none."""
    lines = [line.removeprefix(b"data: ") for line in body.splitlines() if not line.startswith((b"event:", b":"))]
    return [json.loads(line) for line in lines if line.strip() and line != b"[DONE]"]


def chat(said, doc):
    said.error = said.error or doc.get("error", {}).get("message", "")
    for choice in doc.get("choices", []):
        said.text += (choice.get("delta") or choice.get("message") or {}).get("content") or choice.get("text") or ""
        said.ended = said.ended or bool(choice.get("finish_reason"))


def responses(said, doc):
    if "error" in doc and "type" not in doc and doc["error"]:
        said.error = doc["error"]["message"]
    kind = doc.get("type", "")
    said.text += doc["delta"] if kind == "response.output_text.delta" else ""
    response = doc if doc.get("object") == "response" else doc.get("response", {})
    if response.get("status") == "completed":
        said.ended = True
        said.text = said.text or "".join(part.get("text", "") for item in response["output"] for part in item.get("content", []))
    if kind == "response.failed":
        said.error = response["error"]["message"]


def messages(said, doc):
    kind = doc["type"]
    if kind == "error":
        said.error = doc["error"]["message"]
    said.text += doc["delta"].get("text", "") if kind == "content_block_delta" else ""
    said.text += "".join(block.get("text", "") for block in doc["content"]) if kind == "message" else ""
    said.ended = said.ended or kind == "message_stop" or bool(doc.get("stop_reason"))


def gemini(said, doc):
    said.error = said.error or doc.get("error", {}).get("message", "")
    for candidate in doc.get("candidates", []):
        said.text += "".join(part.get("text", "") for part in candidate.get("content", {}).get("parts", []))
        said.ended = said.ended or bool(candidate.get("finishReason"))


def ollama(said, doc):
    said.error = said.error or doc.get("error", "")
    said.text += doc.get("message", {}).get("content", "") or doc.get("response", "")
    said.ended = said.ended or bool(doc.get("done")) and "error" not in doc


_DIALOGUE = [{"role": "user", "content": SAY}]
SURFACES = {one.name: one for one in (
    Surface("chat", "/v1/chat/completions", "/v1/chat/completions", {"messages": _DIALOGUE}, chat, done=True),
    Surface("completions", "/v1/completions", "/v1/completions", {"prompt": SAY}, chat, done=True),
    Surface("responses", "/v1/responses", "/v1/responses", {"input": SAY}, responses),
    Surface("messages", "/v1/messages", "/v1/messages", {"messages": _DIALOGUE, "max_tokens": 100}, messages),
    Surface("gemini", "/v1beta/models/{model}:generateContent", "/v1beta/models/{model}:streamGenerateContent?alt=sse",
            {"contents": [{"role": "user", "parts": [{"text": SAY}]}]}, gemini, flag=False),
    Surface("ollama chat", "/api/chat", "/api/chat", {"messages": _DIALOGUE}, ollama),
    Surface("ollama generate", "/api/generate", "/api/generate", {"prompt": SAY}, ollama),
)}
OPEN_ALL = '[ollama]\nmode = "key"\n'
