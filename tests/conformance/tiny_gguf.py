"""A model for llama.cpp that fits in a test: a llama of 200 KB that recites one sentence, word by word, then stops.

Attention and feed-forward weights are zero, so what a token's embedding holds reaches the output as it is; the output row of
each word is the embedding of the word before it. Greedy decoding is therefore known, and everything around it (tokenizer,
template, sampling, grammars, slots, HTTP) is the real thing. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""
import random
import struct
from pathlib import Path

WORDS = ("A", " whole", " turn", " or", " none", ":", " that", " is", " the", " promise", ".")
SENTENCE = "".join(WORDS)

WIDTH, HEADS, LAYERS, HIDDEN, CONTEXT = 64, 2, 1, 64, 8192
ALIGNMENT = 32
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
UNKNOWN, NORMAL, CONTROL, BYTE = 2, 1, 3, 6

TEMPLATE = ("{%- for message in messages %}<|turn|>{{ message.role }}\n{{ message.content }}\n{%- endfor %}"
            "{%- if add_generation_prompt %}<|answer|>{%- endif %}")


def vocabulary() -> list[tuple[str, int]]:
    """(token, type): specials, one token a byte, printable ASCII, the words of the sentence. A space is written ▁."""
    specials = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL), ("<|turn|>", CONTROL), ("<|answer|>", CONTROL)]
    singles = [chr(code) for code in range(33, 127)] + ["▁"]
    words = [word.replace(" ", "▁") for word in WORDS if len(word) > 1]
    return specials + [(f"<0x{n:02X}>", BYTE) for n in range(256)] + [(text, NORMAL) for text in singles + words]


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def field(key: str, kind: int, value: object) -> bytes:
    return text(key) + struct.pack("<I", kind) + scalar(kind, value)


def scalar(kind: int, value: object) -> bytes:
    if kind == STRING:
        return text(str(value))
    return struct.pack({U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}[kind], value)


def array(key: str, kind: int, values: list) -> bytes:
    items = b"".join(scalar(kind, value) for value in values)
    return text(key) + struct.pack("<IIQ", ARRAY, kind, len(values)) + items


def metadata(tokens: list[tuple[str, int]]) -> list[bytes]:
    names = [name for name, _ in tokens]
    return [
        field("general.architecture", STRING, "llama"), field("general.name", STRING, "recite"),
        field("general.alignment", U32, ALIGNMENT), field("general.file_type", U32, 0),
        field("llama.context_length", U32, CONTEXT), field("llama.embedding_length", U32, WIDTH),
        field("llama.block_count", U32, LAYERS), field("llama.feed_forward_length", U32, HIDDEN),
        field("llama.attention.head_count", U32, HEADS), field("llama.attention.head_count_kv", U32, HEADS),
        field("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
        field("llama.rope.dimension_count", U32, WIDTH // HEADS), field("llama.vocab_size", U32, len(tokens)),
        field("tokenizer.ggml.model", STRING, "llama"), array("tokenizer.ggml.tokens", STRING, names),
        array("tokenizer.ggml.scores", F32, [float(-n) for n in range(len(tokens))]),
        array("tokenizer.ggml.token_type", I32, [kind for _, kind in tokens]),
        field("tokenizer.ggml.unknown_token_id", U32, 0), field("tokenizer.ggml.bos_token_id", U32, 1),
        field("tokenizer.ggml.eos_token_id", U32, 2), field("tokenizer.ggml.add_bos_token", BOOL, False),
        field("tokenizer.ggml.add_space_prefix", BOOL, False), field("tokenizer.chat_template", STRING, TEMPLATE),
    ]


def weights(tokens: list[tuple[str, int]], seed: int) -> dict[str, tuple[tuple[int, ...], list[float]]]:
    """name -> (dimensions in ggml's order, values)."""
    dice = random.Random(seed)
    embedding = [[dice.choice((-1.0, 1.0)) for _ in range(WIDTH)] for _ in tokens]
    place = {name: n for n, (name, _) in enumerate(tokens)}
    chain = [place["<|answer|>"], *(place[word.replace(" ", "▁")] for word in WORDS), place["</s>"]]
    output = [[0.0] * WIDTH for _ in tokens]
    for before, after in zip(chain, chain[1:], strict=False):
        output[after] = embedding[before]
    table = {"token_embd.weight": ((WIDTH, len(tokens)), sum(embedding, [])),
             "output.weight": ((WIDTH, len(tokens)), sum(output, [])),
             "output_norm.weight": ((WIDTH,), [1.0] * WIDTH)}
    for n in range(LAYERS):
        for norm in ("attn_norm", "ffn_norm"):
            table[f"blk.{n}.{norm}.weight"] = ((WIDTH,), [1.0] * WIDTH)
        for square in ("attn_q", "attn_k", "attn_v", "attn_output"):
            table[f"blk.{n}.{square}.weight"] = ((WIDTH, WIDTH), [0.0] * WIDTH * WIDTH)
        for hidden in ("ffn_gate", "ffn_up"):
            table[f"blk.{n}.{hidden}.weight"] = ((WIDTH, HIDDEN), [0.0] * WIDTH * HIDDEN)
        table[f"blk.{n}.ffn_down.weight"] = ((HIDDEN, WIDTH), [0.0] * WIDTH * HIDDEN)
    return table


def write(path: Path, seed: int = 11) -> None:
    """A GGUF file, version 3."""
    tokens = vocabulary()
    fields, table = metadata(tokens), weights(tokens, seed)
    head, body = bytearray(), bytearray()
    for name, (dimensions, values) in table.items():
        head += text(name) + struct.pack(f"<I{len(dimensions)}QIQ", len(dimensions), *dimensions, 0, len(body))
        body += struct.pack(f"<{len(values)}f", *values)
        body += bytes(-len(body) % ALIGNMENT)
    start = b"GGUF" + struct.pack("<IQQ", 3, len(table), len(fields)) + b"".join(fields) + head
    path.write_bytes(start + bytes(-len(start) % ALIGNMENT) + body)
