"""What does each engine save, and what did the gate discard? A table over the request bodies of a folder, or over made-up sessions.

    python benchmarks/compression.py                 sessions made up in talks.py, on every wire
    python benchmarks/compression.py FOLDER          every *.json in it: a body, or a record with "path" and "body"
"""
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.talks import TALKS
from gateway.compress import plan, wires
from gateway.compress.filters import builtin
from gateway.compress.tally import Tally

PATHS = (("/responses", "openai-responses"), ("/messages", "anthropic"), ("enerateContent", "gemini"), ("/api/chat", "ollama"),
         ("/chat/completions", "openai-chat"))


def bodies(folder: str | None) -> Iterator[tuple[str, bytes]]:
    """(wire, body)."""
    if folder is None:
        for wire, make in TALKS.items():
            for n in (4, 16, 40):
                yield wire, orjson.dumps(make(n))
        return
    for file in sorted(Path(folder).glob("*.json")):
        doc: Any = json.loads(file.read_bytes())
        if not isinstance(doc, dict):
            continue
        body = doc.get("body") if isinstance(doc.get("body"), dict) else doc
        if wire := wire_of(str(doc.get("path") or ""), body):
            yield wire, orjson.dumps(body)


def wire_of(path: str, body: dict[str, Any]) -> str:
    if path:
        return next((wire for part, wire in PATHS if part in path), "")
    if "contents" in body:
        return "gemini"
    if "input" in body:
        return "openai-responses"
    return "anthropic" if "max_tokens" in body and "system" in body else "openai-chat" if "messages" in body else ""


def composed(asked: list[tuple[str, bytes]]) -> str:
    """Where the characters are: what nobody changes, and what an engine may look at."""
    found = dict.fromkeys(("system", "user", "assistant", "tool"), 0)
    loose = dict(found)
    for wire, body in asked:
        talk = wires.read(wire, body)
        for segment in talk.segments if talk is not None else ():
            found[segment.role] += len(segment.text)
            loose[segment.role] += 0 if segment.locked or segment.role == "system" else len(segment.text)
    texts = ", ".join(f"{role} {n:,} (open to engines: {loose[role]:,})" for role, n in found.items())
    return f"characters of texts: {texts}; the rest is definitions of tools, calls and envelopes, which nobody changes"


def main() -> None:
    asked = list(bodies(sys.argv[1] if len(sys.argv) > 1 else None))
    filters = builtin()
    print(f"{len(asked)} requests, {sum(len(body) for _, body in asked):,} bytes; {composed(asked)}\n")
    print("| mode | engine | edits | characters saved | share | discarded by the gate |")
    print("|---|---|---:|---:|---:|---|")
    for mode in plan.MODES[1:]:
        tally = Tally()
        for wire, body in asked:
            talk = wires.read(wire, body)
            if talk is None:
                continue
            talk.filters = filters
            outcome = plan.compress(talk, plan.Aim(mode, len(body) // 4))
            if outcome.changed:
                orjson.loads(wires.write(body, outcome.changed))
            tally.add(outcome)
        whole = max(tally.chars_before, 1)
        for name, row in tally.engines.items():
            if row.runs:
                why = ", ".join(f"{reason} {n}" for reason, n in row.discarded.items()) or "–"
                print(f"| {mode} | {name} | {row.edits} | {row.saved_chars:,} | {row.saved_chars / whole:.1%} | {why} |")
        print(f"| **{mode}** | all | | **{tally.chars_before - tally.chars_after:,}** | "
              f"**{1 - tally.chars_after / whole:.1%}** | {tally.saved_tokens:,} tokens |")


if __name__ == "__main__":
    main()
