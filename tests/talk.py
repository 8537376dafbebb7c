"""A plain HTTP client for tests that look at what really came over the wire."""
import json
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from tests.conftest import KEY

ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
AUTH = {"Authorization": f"Bearer {KEY}"}


@dataclass
class Answer:
    """A response, read to its end (or to where it broke)."""
    status: int
    headers: Any
    body: bytes
    broken: str = ""
    frames: list[Any] = field(default_factory=list)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def done(self) -> int:
        return self.body.count(b"data: [DONE]")

    @property
    def text(self) -> str:
        return "".join(choice["delta"].get("content") or "" for f in self.frames for choice in f.get("choices", []))

    @property
    def finishes(self) -> list[str]:
        return [c["finish_reason"] for f in self.frames for c in f.get("choices", []) if c.get("finish_reason")]

    @property
    def error(self) -> dict[str, Any] | None:
        if self.frames:
            return next((f["error"] for f in self.frames if "error" in f), None)
        return self.json.get("error") if self.status >= 400 else None


async def ask(base_url: str, body: Any = None, *, path: str = "/v1/chat/completions", headers: Any = None,
              stream: bool | None = None, method: str = "POST", raw: bytes | None = None) -> Answer:
    """One request; ``stream`` is put into the body when given."""
    body = dict(ASK if body is None else body) if raw is None else None
    if stream is not None and body is not None:
        body["stream"] = stream
    data = raw if raw is not None else json.dumps(body).encode()
    given = {"Content-Type": "application/json", **(AUTH if headers is None else headers)}
    async with aiohttp.ClientSession() as session:
        async with session.request(method, base_url + path, data=data if method == "POST" else None, headers=given) as got:
            pieces, broken = [], ""
            try:
                async for piece in got.content.iter_any():
                    pieces.append(piece)
            except aiohttp.ClientError as exc:
                broken = type(exc).__name__
            answer = Answer(got.status, got.headers, b"".join(pieces), broken)
    if answer.headers.get("Content-Type", "").startswith("text/event-stream"):
        lines = [line[6:] for line in answer.body.split(b"\n") if line.startswith(b"data: ")]
        answer.frames = [json.loads(line) for line in lines if line != b"[DONE]"]
    return answer
