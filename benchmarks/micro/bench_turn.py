"""How long does the turn take for one event? Printed beside ``orjson.loads`` of the same frame.

    python benchmarks/micro/bench_turn.py
"""
import time
from collections.abc import Callable

import orjson

from gateway.core.events import End, Event, Finish, Meta, Text, ToolDelta, Usage
from gateway.stream.turn import Rules, Turn

N_FRAMES = 200
ROUNDS = 200
WORDS = ("The", " quick", " brown", " fox", " jumps", " over", " a", " < b", " lazy", " dog.")
TOOLS = {"get_weather": {"type": "object", "properties": {"city": {"type": "string"}}}}
FRAME = b'{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":' \
        b'{"content":"%s"},"finish_reason":null}]}'


def texts(words: tuple[str, ...]) -> list[Event]:
    return [Text(words[i % len(words)], FRAME % words[i % len(words)].encode()) for i in range(N_FRAMES)]


def stream(rules: Rules, events: list[Event], per_read: int) -> Callable[[], None]:
    """A whole turn: opening, the events in reads of ``per_read``, the end."""
    reads = [events[i:i + per_read] for i in range(0, len(events), per_read)]
    opening: list[Event] = [Meta(id="chatcmpl-1", model="m")]
    ending: list[Event] = [Finish("stop"), Usage(1, 2, total=3), End()]

    def once() -> None:
        turn = Turn(rules, 0.0)
        turn.feed(opening, 0.1)
        for read in reads:
            turn.feed(read, 0.2)
        turn.feed(ending, 0.3)
        turn.eof(0.4)

    return once


def best_us(once: Callable[[], object], n_events: int) -> float:
    """Best of all rounds, per event."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        once()
        best = min(best, time.perf_counter() - start)
    return best / n_events * 1e6


def main() -> None:
    frame = FRAME % b" quick"
    plain = tuple(word for word in WORDS if "<" not in word)
    arguments = orjson.dumps({"city": "x" * 4 * N_FRAMES}).decode()
    calls: list[Event] = [ToolDelta(index=0, id="call_1", name="get_weather")]
    calls += [ToolDelta(index=0, arguments=arguments[i:i + 4]) for i in range(0, len(arguments), 4)]
    rows: list[tuple[str, Callable[[], object], int]] = [
        ("orjson.loads of one frame", lambda: orjson.loads(frame), 1),
        ("text, no tools, one event a read", stream(Rules(), texts(plain), 1), N_FRAMES),
        ("text, no tools, ten events a read", stream(Rules(), texts(plain), 10), N_FRAMES),
        ("text, tools declared, one event a read", stream(Rules(tools=TOOLS), texts(plain), 1), N_FRAMES),
        ("text, tools declared, ten events a read", stream(Rules(tools=TOOLS), texts(plain), 10), N_FRAMES),
        ("text, tools declared, every tenth is suspect", stream(Rules(tools=TOOLS), texts(WORDS), 1), N_FRAMES),
        ("text, tools declared, every one is suspect", stream(Rules(tools=TOOLS), texts((" a < b",)), 1), N_FRAMES),
        ("tool deltas, whole delivery", stream(Rules(tools=TOOLS), calls, 1), len(calls)),
        ("tool deltas, live delivery", stream(Rules(tools=TOOLS, tool_calls="live"), calls, 1), len(calls)),
        ("a turn of one word (µs a turn)", stream(Rules(), texts(("Hi",))[:1], 1), 1),
    ]
    for name, once, n_events in rows:
        print(f"{name:48s} {best_us(once, n_events):8.2f} µs")


if __name__ == "__main__":
    main()
