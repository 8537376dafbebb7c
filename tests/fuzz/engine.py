"""Where do inputs come from that nobody thought of? Good ones, changed: bytes, tokens, values of JSON, one spliced into another.

What brought a new outcome (another error, another kind of answer) is changed further: outcomes steer where coverage would, and cost nothing.
"""
import json
import re
import time
import traceback
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from gateway.core.errors import GatewayError

SLOW_S = 2.0                                     # of CPU time for one input: that would be a hang on the loop
LARGEST = 65_536
POOL = 400
ODD: tuple[Any, ...] = (None, True, False, 0, -1, 1, 0.5, 2**31, 2**63, 2**70, -2**63, 1e308, "", " ", "0", "a" * 300, "\ud800", "\0", "\u2028",
                        "data: [DONE]", "<tool_call>", "</think>", "\r\n", [], {}, [[]], [None], {"": None}, {"type": "text"}, "auto", "user", "system")
TOKENS: tuple[bytes, ...] = (
    b"\n", b"\r\n", b"\r", b"\n\n", b"\0", b"\xff", b"\xef\xbb\xbf", b"data: ", b"event: ", b"data: [DONE]\n\n", b": ping\n\n", b"{", b"}", b"[", b"]",
    b'"', b"\\", b"\\u", b"\\ud800", b",", b":", b"null", b"true", b"-", b"1e999", b"9" * 40, b'{"error":', b"<tool_call>", b"<think>", b"</think>",
    b"<|", b"[TOOL_CALLS]", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n", b"HTTP/1.1", b";", b" ", b"\t", b"%", b"=",
    b"${env:", b"${file:", b"[[", b"]]", b"'''", b"\xc3\x28", b"\xf0\x9f\x98\x80")


class Finding(msgspec.Struct):
    """An input that nothing of ours has an answer to."""
    target: str
    data: bytes
    what: str


class Mutator:
    """Endless inputs for one target."""

    def __init__(self, seeds: Iterable[bytes], dice: Random) -> None:
        self.seeds = list(seeds)
        self.pool = list(self.seeds)
        self._dice = dice

    def keep(self, data: bytes) -> None:
        """Change this one too."""
        if len(self.pool) < POOL + len(self.seeds):
            self.pool.append(data)
        else:
            self.pool[self._dice.randrange(len(self.seeds), len(self.pool))] = data

    def make(self) -> bytes:
        dice = self._dice
        data = dice.choice(self.pool)
        if dice.random() < 0.5 and (made := self._in_json(data)) is not None:
            data = made
            if dice.random() < 0.7:
                return data[:LARGEST]
        for _ in range(1 + int(dice.expovariate(0.7))):
            data = self._in_bytes(data)
        return data[:LARGEST]

    def _in_bytes(self, data: bytes) -> bytes:
        dice, n = self._dice, len(data)
        at, size = dice.randint(0, n), int(dice.expovariate(0.1)) + 1
        way = dice.randrange(8)
        if way == 0:
            return data[:at] + data[at + size:]
        if way == 1:
            return data[:at] + dice.choice(TOKENS) + data[at:]
        if way == 2:
            return data[:at] + bytes([dice.randrange(256)]) + data[at + 1:]
        if way == 3:
            return data[:at] + data[at:at + size] * dice.choice((2, 3, 50)) + data[at + size:]
        if way == 4:
            other = dice.choice(self.pool)
            return data[:at] + other[dice.randint(0, len(other)):]
        if way == 5:
            return data[:at]
        if way == 6:
            other = dice.choice(self.pool)
            start = dice.randint(0, len(other))
            return data[:at] + other[start:start + size] + data[at:]
        return data[at:] + data[:at]

    def _in_json(self, data: bytes) -> bytes | None:
        """A change of one value within one of the documents in it (a body, or the frames of a stream)."""
        lines = data.split(b"\n")
        places = [i for i, line in enumerate(lines) if b"{" in line] if data.count(b"\ndata:") or data.startswith(b"data:") else []
        at = self._dice.choice(places) if places else -1
        text = lines[at] if places else data
        head = b"data: " if text.startswith(b"data: ") else b""
        try:
            doc = json.loads(text[len(head):])
        except (ValueError, RecursionError):
            return None
        try:
            made = head + json.dumps(self._changed(doc)).encode("utf-8", "surrogatepass")
        except RecursionError:
            return None
        if not places:
            return made
        lines[at] = made
        return b"\n".join(lines)

    def _changed(self, doc: Any) -> Any:
        dice = self._dice
        holders: list[Any] = []
        todo: list[Any] = [doc]
        while todo:
            one = todo.pop()
            if isinstance(one, (dict, list)) and one:
                holders.append(one)
                todo += one.values() if isinstance(one, dict) else one
        if not holders:
            return dice.choice(ODD)
        holder = dice.choice(holders)
        key = dice.choice(list(holder)) if isinstance(holder, dict) else dice.randrange(len(holder))
        way = dice.randrange(6)
        if way == 0:
            del holder[key]
        elif way == 1:
            other = dice.choice(holders)
            holder[key] = json.loads(json.dumps(dice.choice(list(other.values()) if isinstance(other, dict) else other)))
        elif way == 2 and isinstance(holder, dict):
            holder[dice.choice(("type", "role", "content", "id", "index", "name", "arguments", "", "error", "stream", str(key)[:-1]))] = holder[key]
        elif way == 3:
            for _ in range(dice.choice((1, 5, 200))):
                holder[key] = [holder[key]] if dice.random() < 0.5 else {"x": holder[key]}
        elif way == 4 and isinstance(holder, list):
            holder *= dice.choice((2, 20))
        else:
            holder[key] = dice.choice(ODD)
        return doc


def dice_of(data: bytes) -> Random:
    """What is left to chance about an input (where it is cut) is the same whenever it is tried."""
    return Random(zlib.crc32(data))


def pieces(data: bytes, dice: Random) -> list[bytes]:
    """The reads in which it comes."""
    if dice.random() < 0.2:
        return [data]
    cuts = sorted(dice.randint(0, len(data)) for _ in range(dice.randint(1, 12)))
    edges = [0, *cuts, len(data)]
    return [data[i:j] for i, j in zip(edges, edges[1:], strict=False) if i < j]


_NUMBERS = re.compile(r"\d+|'[^']*'|\"[^\"]*\"")


def told(error: GatewayError) -> str:
    """An error as an outcome: what of it depends on the input's own words is left out."""
    return f"{error.kind} {error.status} {_NUMBERS.sub('#', error.param or '')} {_NUMBERS.sub('#', error.message)[:60]}"


def attempt(target: str, run: Callable[[bytes], str], data: bytes) -> str | Finding:
    """The outcome of one input."""
    began = time.process_time()
    try:
        outcome = run(data)
    except GatewayError as error:
        outcome = told(error)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return Finding(target, data, f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}: {error}"[:300])
    if time.process_time() - began > SLOW_S:
        return Finding(target, data, f"took {time.process_time() - began:.1f} s")
    return outcome


def smaller(finding: Finding, run: Callable[[bytes], str], tries: int = 400) -> Finding:
    """The same finding with as little input as some tries get to."""
    word = finding.what.partition(":")[0]
    data, step = finding.data, max(1, len(finding.data) // 2)
    while step and tries:
        at = 0
        while at < len(data) and tries:
            tries -= 1
            part = data[:at] + data[at + step:]
            got = attempt(finding.target, run, part)
            if isinstance(got, Finding) and got.what.partition(":")[0] == word:
                data, finding = part, got
            else:
                at += step
        step //= 2
    return finding
