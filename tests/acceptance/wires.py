"""One answer in every wire format, with the counts that its providers write, and what it costs by hand.

The model reads, by each format's own habit, 1000 tokens of which 400 come from the cache (and 100 go into it where a format
can say that), and writes 500 of which 200 are thoughts (where a format can say that).
"""
import json

import msgspec

from gateway.mock import script as say
from tests.unit.wire.test_bedrock import event as aws

PRICE = "{input = 2.0, output = 10.0, cached = 0.5, cache_write = 3.0, reasoning = 20.0}"
TEXT = "Hello there"


class Shape(msgspec.Struct):
    """``counts``: input, output, cached, cache_write, reasoning as the record has them."""
    wire: str
    whole: bytes
    stream: bytes
    counts: tuple[int, int, int, int, int]
    usd: float
    kind: str = "text/event-stream"


def dump(doc):
    return json.dumps(doc).encode()


def sse(*docs, named=False, done=False):
    frames = [(b"event: " + doc["type"].encode() + b"\n" if named else b"") + b"data: " + dump(doc) + b"\n\n" for doc in docs]
    return b"".join(frames) + (b"data: [DONE]\n\n" if done else b"")


def chat(usage):
    whole = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": usage,
             "choices": [{"index": 0, "message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}]}
    stream = say.frame(TEXT) + say.frame(finish="stop") + say.frame(choices=[], usage=usage) + say.DONE
    return dump(whole), stream


def responses(usage):
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
               "content": [{"type": "output_text", "text": TEXT, "annotations": []}]}
    whole = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m", "output": [message],
             "usage": usage}
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    return dump(whole), sse(
        {"type": "response.created", "response": whole | {"status": "in_progress", "output": [], "usage": None}},
        {"type": "response.output_item.added", "output_index": 0, "item": message | {"content": [], "status": "in_progress"}},
        {"type": "response.content_part.added", **at, "part": {"type": "output_text", "text": "", "annotations": []}},
        {"type": "response.output_text.delta", **at, "delta": TEXT},
        {"type": "response.output_text.done", **at, "text": TEXT},
        {"type": "response.output_item.done", "output_index": 0, "item": message},
        {"type": "response.completed", "response": whole}, named=True)


def anthropic(given, output, **cache):
    usage = {"input_tokens": given, "output_tokens": output, **cache}
    whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": TEXT}],
             "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
    return dump(whole), sse(
        {"type": "message_start", "message": whole | {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": TEXT}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": output}},
        {"type": "message_stop"}, named=True)


def gemini(usage):
    def part(text, **more):
        return {"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": text}]}, **more}],
                "usageMetadata": usage, "modelVersion": "m"}
    return dump(part(TEXT, finishReason="STOP")), sse(part(TEXT[:4]), part(TEXT[4:], finishReason="STOP"))


def bedrock(usage):
    whole = {"output": {"message": {"role": "assistant", "content": [{"text": TEXT}]}}, "stopReason": "end_turn", "usage": usage}
    return dump(whole), (aws("messageStart", role="assistant") + aws("contentBlockDelta", contentBlockIndex=0, delta={"text": TEXT})
                         + aws("contentBlockStop", contentBlockIndex=0) + aws("messageStop", stopReason="end_turn")
                         + aws("metadata", usage=usage))


def cohere(usage):
    whole = {"id": "x", "finish_reason": "COMPLETE", "usage": usage,
             "message": {"role": "assistant", "content": [{"type": "text", "text": TEXT}]}}
    return dump(whole), sse(
        {"type": "message-start", "id": "x", "delta": {"message": {"role": "assistant"}}},
        {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}},
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": TEXT}}}},
        {"type": "content-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": usage}}, named=True, done=True)


def ollama(given, output):
    def line(done, text, **more):
        return {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": {"role": "assistant", "content": text}, "done": done, **more}
    end = {"done_reason": "stop", "prompt_eval_count": given, "eval_count": output}
    return dump(line(True, TEXT, **end)), dump(line(False, TEXT)) + b"\n" + dump(line(True, "", **end)) + b"\n"


# In dollars per million: 600 fresh x 2 + 400 cached x 0.5 + 300 said x 10 + 200 thought x 20 = 1200 + 200 + 3000 + 4000
FULL = 0.0084
# 500 fresh x 2 + 400 cached x 0.5 + 100 written x 3 + 500 said x 10 = 1000 + 200 + 300 + 5000
CACHING = 0.0065
# 1000 fresh x 2 + 500 said x 10
PLAIN = 0.007

SHAPES = {
    "chat, OpenAI": Shape("openai-chat", *chat({
        "prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500, "prompt_tokens_details": {"cached_tokens": 400},
        "completion_tokens_details": {"reasoning_tokens": 200}}), (1000, 500, 400, 0, 200), FULL),
    "chat, xAI leaves thoughts out of the answer": Shape("openai-chat", *chat({
        "prompt_tokens": 1000, "completion_tokens": 300, "total_tokens": 1500, "prompt_tokens_details": {"cached_tokens": 400},
        "completion_tokens_details": {"reasoning_tokens": 200}}), (1000, 500, 400, 0, 200), FULL),
    # DeepSeek: 600 x 2 + 400 x 0.5 + 500 x 10
    "chat, DeepSeek": Shape("openai-chat", *chat({
        "prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500, "prompt_cache_hit_tokens": 400,
        "prompt_cache_miss_tokens": 600}), (1000, 500, 400, 0, 0), 0.0064),
    "chat, three counts": Shape("openai-chat", *chat({"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}),
                                (1000, 500, 0, 0, 0), PLAIN),
    "responses": Shape("openai-responses", *responses({
        "input_tokens": 1000, "input_tokens_details": {"cached_tokens": 400}, "output_tokens": 500,
        "output_tokens_details": {"reasoning_tokens": 200}, "total_tokens": 1500}), (1000, 500, 400, 0, 200), FULL),
    "anthropic leaves what the cache took out of the input": Shape("anthropic", *anthropic(
        500, 500, cache_read_input_tokens=400, cache_creation_input_tokens=100), (1000, 500, 400, 100, 0), CACHING),
    "gemini leaves thoughts out of the answer": Shape("gemini", *gemini({
        "promptTokenCount": 1000, "cachedContentTokenCount": 400, "candidatesTokenCount": 300, "thoughtsTokenCount": 200,
        "totalTokenCount": 1500}), (1000, 500, 400, 0, 200), FULL),
    "bedrock leaves what the cache took out of the input": Shape("bedrock-converse", *bedrock({
        "inputTokens": 500, "outputTokens": 500, "totalTokens": 1500, "cacheReadInputTokens": 400, "cacheWriteInputTokens": 100}),
        (1000, 500, 400, 100, 0), CACHING, "application/vnd.amazon.eventstream"),
    "cohere": Shape("cohere", *cohere({
        "billed_units": {"input_tokens": 10, "output_tokens": 5}, "tokens": {"input_tokens": 1000.0, "output_tokens": 500.0},
        "cached_tokens": 400}), (1000, 500, 400, 0, 0), 0.0064),
    "ollama": Shape("ollama", *ollama(1000, 500), (1000, 500, 0, 0, 0), PLAIN, "application/x-ndjson"),
}
