"""How is the completions API before chat spoken? As a variant of the chat wire (operation ``completions``).

https://platform.openai.com/docs/api-reference/completions. A target whose model has ``completions`` is asked the same way, on
``/completions``; every other target gets the prompt as a chat, and its answer is told as a text completion.
"""
from typing import Any, Final

import msgspec

from gateway.core import events as ev
from gateway.core import reply as rp
from gateway.core import request as rq
from gateway.core.errors import bad_request
from gateway.wire import splice
from gateway.wire.base import Outbound, Shown
from gateway.wire.lenient import dump, load
from gateway.wire.openai_chat import outgoing
from gateway.wire.openai_chat.encode import Encoder, chat_id, finish_for
from gateway.wire.openai_chat.request import Findings, check_options, check_top
from gateway.wire.openai_chat.schema import Completion, Json, write_usage
from gateway.wire.problems import decode, invalid

FLAG: Final = "completions"                      # of an Outbound: the target has /completions itself
_decoder = msgspec.json.Decoder(Completion)
MAX_PROMPTS: Final = 2048

_FILL_IN: Final = ("You complete text at a cursor. You are given what stands before the cursor and what stands after it. Answer "
                   "with exactly the text that belongs between the two, and nothing else: no quotes, no fences, no comments.")


# ---------------------------------------------------------------- requests
def parse_completion(raw: bytes) -> rq.Request:
    body, raw = decode(raw, _decoder)
    _check_prompt(body.prompt)
    check_options(body)
    if body.logprobs is not None and body.logprobs < 0:
        raise invalid("logprobs", "must not be negative")
    if body.best_of is not None and body.best_of < max(body.n or 1, 1):
        raise invalid("best_of", "must not be less than n")
    found = Findings()
    check_top(raw, body, found)
    options = body.stream_options
    limit = body.max_tokens if body.max_tokens is not None and body.max_tokens > 0 else None
    return rq.Request(
        wire="openai-chat", raw=raw, body=body, model=body.model or "", stream=body.stream or False, max_tokens=limit,
        n=body.n or 1, made=_n_made(body), chars=_size(body.prompt) + len(body.suffix or ""), clean=found.clean,
        operation="completions", include_usage=bool(options and options.include_usage and body.stream))


def _n_made(body: Completion) -> int:
    """``best_of`` answers are made for each prompt, whatever is shown of them."""
    prompt = body.prompt
    n_prompts = len(prompt) if isinstance(prompt, list) and not isinstance(prompt[0], int) else 1
    return max(body.n or 1, body.best_of or 1) * n_prompts


def _check_prompt(prompt: Any) -> None:
    if prompt is None:
        raise invalid("prompt", "this field is required")
    if isinstance(prompt, str):
        return
    if not prompt:
        raise invalid("prompt", "must hold at least one prompt")
    kind = type(prompt[0])
    if kind not in (str, int, list):
        raise invalid("prompt.0", "must be a string, a token or a list of tokens")
    if kind is not int and len(prompt) > MAX_PROMPTS:
        raise invalid("prompt", f"holds more than {MAX_PROMPTS} prompts")
    for i, item in enumerate(prompt):
        if type(item) is not kind or (kind is int and item < 0):
            raise invalid(f"prompt.{i}", "must be of the same kind as the first: a string, a token or a list of tokens")
        if kind is list and not all(type(token) is int and token >= 0 for token in item):
            raise invalid(f"prompt.{i}", "must hold token numbers only")


def _size(prompt: Any) -> int:
    """Characters; a token counts as four."""
    if isinstance(prompt, str):
        return len(prompt)
    return sum([4 if isinstance(item, int) else _size(item) for item in prompt])


def native(to: Outbound) -> bool:
    return FLAG in to.flags


def build_completion(request: rq.Request, to: Outbound) -> bytes:
    """The body for a target of the chat wire: the caller's own for one that has completions, else a chat."""
    if native(to):
        return outgoing.same_format(request, to)
    top: dict[str, Any] = dict(splice.fields(request.raw))
    for name in ("prompt", "suffix", "echo", "best_of", "logprobs"):
        top.pop(name, None)
    for name in [name for name, value in top.items() if bytes(value) == b"null"]:
        del top[name]
    if request.max_tokens is None:
        top.pop("max_tokens", None)
    top["messages"] = dump(chat_messages(request))
    outgoing.adapt(top, request.body, to)
    return splice.join(top)


def prompt_of(request: rq.Request) -> str:
    """The one prompt as text. Raises bad_request for what a chat cannot take."""
    prompt = request.body.prompt
    if isinstance(prompt, str):
        return prompt
    if isinstance(prompt[0], str) and len(prompt) == 1:
        return str(prompt[0])
    what = "several prompts" if isinstance(prompt[0], str) else "prompts given as tokens"
    raise bad_request(f"Invalid request: prompt: {what} are only taken by models with a completions endpoint of their own.",
                      "prompt")


def chat_messages(request: rq.Request) -> list[Json]:
    prompt, suffix = prompt_of(request), request.body.suffix
    if not suffix:
        return [{"role": "user", "content": prompt}]
    return [{"role": "system", "content": _FILL_IN},
            {"role": "user", "content": f"Before the cursor:\n{prompt}\n\nAfter the cursor:\n{suffix}\n\nBetween them:"}]


def open_completion(request: rq.Request) -> rq.Conversation:
    """The dialogue for an upstream of another format."""
    body: Completion = request.body
    stop = [body.stop] if isinstance(body.stop, str) else body.stop or None
    return rq.Conversation(
        messages=[rq.Message(message["role"], [rq.Text(message["content"])]) for message in chat_messages(request)],
        sampling=rq.Sampling(max_tokens=request.max_tokens, temperature=body.temperature, top_p=body.top_p, stop=stop,
                             seed=body.seed, presence_penalty=body.presence_penalty, frequency_penalty=body.frequency_penalty,
                             logit_bias=body.logit_bias, n=body.n), user=body.user or "")


# ---------------------------------------------------------------- answers
def completion_id(made: str) -> str:
    return made if made.startswith("cmpl-") else "cmpl-" + made


def _echo(shown: Shown) -> str:
    """What an ``echo`` puts before the text of a target that knows none itself."""
    body = shown.request.body
    if not isinstance(body, Completion) or not body.echo:
        return ""
    prompt = body.prompt
    return prompt if isinstance(prompt, str) else prompt[0] if prompt and isinstance(prompt[0], str) else ""


class CompletionEncoder(Encoder):
    """A turn as text completions: every choice has a text, which may be empty; thinking and calls have no place here."""

    __slots__ = ("_echo", "_begun", "_native")

    object_ = "text_completion"
    own_frames = b'"text_completion"'

    def __init__(self, shown: Shown) -> None:
        super().__init__(shown)
        self.id = completion_id(self.id)
        self._echo = _echo(shown)
        self._begun: set[int] = set()
        self._native = False                     # the upstream speaks this format: its frames may pass, it echoes itself

    def meta(self, event: ev.Meta, out: list[bytes]) -> None:
        self._native = self._native or event.id.startswith("cmpl-")
        super().meta(event, out)
        self.id = completion_id(self.id)

    def text(self, event: ev.Text, out: list[bytes]) -> None:
        if event.choice not in self._begun:
            self._begun.add(event.choice)
            own = self.same and event.raw is not None and self._is_own(event.raw)
            if self._echo and not own and not self._native:
                self._piece(event.choice, self._echo, out)
        if not self._passed(event.raw, event.choice, out) and event.text:
            self._piece(event.choice, event.text, out)

    def refusal(self, event: ev.Refusal, out: list[bytes]) -> None:
        if event.text:
            self._piece(event.choice, event.text, out)

    def reasoning(self, event: ev.Reasoning, out: list[bytes]) -> None:
        self.nothing(event, out)

    def opaque(self, event: ev.Opaque, out: list[bytes]) -> None:
        self.nothing(event, out)

    def call(self, event: ev.ToolCall, out: list[bytes]) -> None:
        self.nothing(event, out)

    def call_start(self, event: ev.ToolStart, out: list[bytes]) -> None:
        self.nothing(event, out)

    def call_args(self, event: ev.ToolArgs, out: list[bytes]) -> None:
        self.nothing(event, out)

    def last(self, choice: int, reason: str) -> Json:
        return {"text": "", "index": choice, "logprobs": None, "finish_reason": _reason(reason)}

    def _role(self, raw: bytes, choice: int, out: list[bytes]) -> None:
        """There are no roles."""

    def _piece(self, choice: int, text: str, out: list[bytes]) -> None:
        self._write([{"text": text, "index": choice, "logprobs": None, "finish_reason": None}], None, out)


def _reason(reason: str) -> str:
    word = finish_for(reason, False)
    return "stop" if word == "tool_calls" else word


def build_completion_reply(reply: rp.Reply, shown: Shown, raw: bytes | None) -> bytes:
    """The client's whole answer; an upstream's own text completion is kept but for its model's name."""
    if raw is not None and shown.same and not shown.touched and b'"text_completion"' in raw:
        doc, _ = load(raw)
        if isinstance(doc, dict) and doc.get("object") == "text_completion" and doc.get("choices"):
            spliced = splice.set_model(raw, doc.get("model") or "", shown.model) if doc.get("usage") else None
            if spliced is not None:
                return spliced
            doc["model"] = shown.model
            if not doc.get("usage") and reply.usage is not None:
                doc["usage"] = write_usage(reply.usage, True)
            return dump(doc)
    echo = "" if raw is not None and b'"text_completion"' in raw else _echo(shown)
    choices = [{"text": echo + said.text + said.refusal, "index": index, "logprobs": None,
                "finish_reason": _reason(said.finish.reason if said.finish is not None else "stop")}
               for index, said in sorted(reply.choices.items())]
    own = reply.meta.id if shown.same and reply.meta.id else chat_id(shown)
    out: Json = {"id": completion_id(own), "object": "text_completion", "created": shown.created, "model": shown.model,
                 "choices": choices}
    if reply.usage is not None:
        out["usage"] = write_usage(reply.usage, shown.same)
    return dump(out)
