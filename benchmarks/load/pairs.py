#!/usr/bin/env python3
"""What does a stream cost the whole process when client and upstream speak this format and that? CPU time, over real sockets.

    python benchmarks/load/pairs.py [--rounds 5] [chat/openai-chat messages/anthropic …] 2>/dev/null

Streams of 20 chunks one by one, 16 clients at once; rounds are interleaved, the least of them is shown: other work on the machine only
adds. The upstream is a few lines of asyncio that say the frames of benchmarks/micro/bench_translate.py.
"""
import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.micro.bench_translate import MODEL, SAME, asked, stream
from gateway.cli.bench import cpu_s, started

PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
PAIRS = [*SAME.items(), ("messages", "openai-chat"), ("chat", "anthropic"), ("responses", "openai-chat"), ("responses", "anthropic")]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
CLIENTS, STREAMS, PAUSE_S = 16, 1_500, 0.0005


async def serve(frames, reader, writer):
    """One connection of the upstream."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length[15:]))
            writer.write(HEAD)
            for frame in frames:
                writer.write(b"%x\r\n%b\r\n" % (len(frame), frame))
                await asyncio.sleep(PAUSE_S)
            writer.write(b"0\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def ask(port, path, body, n):
    """So many streams over one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    for _ in range(n):
        writer.write(head + body)
        said = await reader.readuntil(b"\r\n\r\n")
        assert said.startswith(b"HTTP/1.1 200"), said[:200]
        while (size := int((await reader.readline()).strip(), 16)):
            await reader.readexactly(size + 2)
        await reader.readline()
    writer.close()


async def measure(surface, wire, streams):
    frames = [frame for frame in stream(wire) if frame]
    upstream = await asyncio.start_server(lambda r, w: serve(frames, r, w), "127.0.0.1", 0)
    base = f"http://127.0.0.1:{upstream.sockets[0].getsockname()[1]}" + ("/v1beta" if wire == "gemini" else "/v1")
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "gateway.toml"
        config.write_text(f'[store]\nurl = "memory:"\n[[providers]]\nid = "up"\nwire = "{wire}"\nbase_url = "{base}"\n'
                          f'api_keys = ["k"]\nmodels = ["{MODEL}"]\n', encoding="utf-8")
        with started(["gateway", "serve", "--config", str(config), "--port", "0"]) as (url, pid):
            port, body = int(url.rsplit(":", 1)[1].strip("/")), asked(surface)
            await asyncio.gather(*(ask(port, PATHS[surface], body, 10) for _ in range(CLIENTS)))
            before = cpu_s(pid)
            await asyncio.gather(*(ask(port, PATHS[surface], body, streams // CLIENTS) for _ in range(CLIENTS)))
            used = cpu_s(pid) - before
    upstream.close()
    return used * 1e6 / (streams // CLIENTS * CLIENTS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*", help="surface/wire; chat/openai-chat is always measured beside them")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--streams", type=int, default=STREAMS)
    given = parser.parse_args()
    pairs = [("chat", "openai-chat"), *(tuple(pair.split("/")) for pair in given.pairs)] if given.pairs else PAIRS
    least = {}
    for _ in range(given.rounds):
        for pair in pairs:
            cost = asyncio.run(measure(*pair, given.streams))
            least[pair] = min(cost, least.get(pair, cost))
    chat = least["chat", "openai-chat"]
    rows = [{"pair": "/".join(pair), "cpu_us": round(cost), "to_chat": round(cost / chat, 2)} for pair, cost in least.items()]
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
