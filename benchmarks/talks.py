"""Which conversations is compression measured on? Sessions of agents on every wire, made up here, the same each time."""
import json
import random
from collections.abc import Iterator
from typing import Any

WORDS = ("table reader index cache value module request token stream buffer worker queue model parser answer window session record "
         "server client handler limit account provider budget report price latency cursor batch signal column filter engine").split()
Json = dict[str, Any]


class Session:
    """Rounds of question, tool calls and answer, as neutral steps: (role, text) or ("call", tool, arguments, result)."""

    def __init__(self, seed: int = 7) -> None:
        self.dice = random.Random(seed)

    def prose(self, sentences: int) -> str:
        pick = self.dice.choice
        said = [" ".join(pick(WORDS) for _ in range(self.dice.randint(7, 14))).capitalize() + "." for _ in range(sentences)]
        return "\n\n".join(" ".join(said[at:at + 4]) for at in range(0, len(said), 4))

    def source(self, n: int) -> str:
        lines = ["import os", "", ""]
        for i in range(n):
            name = f"{self.dice.choice(WORDS)}_{i}"
            lines += [f"def {name}(value: int) -> int:", f"    limit = {self.dice.randint(2, 900)}", "    if value > limit:",
                      f"        return value - {i}", "    return limit", "", ""]
        return "\n".join(lines)

    def pytest(self, n: int) -> str:
        rows = [f"tests/test_{self.dice.choice(WORDS)}.py::test_{self.dice.choice(WORDS)}_{i} PASSED [{100 * i // n:3d}%]"
                for i in range(n)]
        return "\n".join(["=" * 24 + " test session starts " + "=" * 24, "platform linux -- Python 3.11.7", *rows,
                          "tests/test_reader.py::test_last FAILED [100%]", "E       assert 41 == 42",
                          "tests/test_reader.py:17: AssertionError", f"==== 1 failed, {n} passed in 3.20s ===="])

    def install(self, n: int) -> str:
        out: list[str] = []
        for i in range(n):
            name = f"{self.dice.choice(WORDS)}-{i}"
            out += [f"Collecting {name}", f"  Downloading {name}-1.{i}-py3-none-any.whl ({i + 4} kB)",
                    "     " + "━" * 40 + f" {i + 4}/{i + 4} kB"]
        return "\n".join([*out, f"Successfully installed {n} packages"])

    def records(self, n: int) -> str:
        return json.dumps([{"id": i, "name": self.dice.choice(WORDS), "price": round(self.dice.random() * 90, 2), "active": i % 3 == 0}
                           for i in range(n)], indent=2)

    def rounds(self, n: int) -> Iterator[tuple[str, ...]]:
        sources = [(f"src/{name}.py", self.source(14)) for name in WORDS[:4]]
        for i in range(n):
            yield "user", f"Please look at step {i}: {self.prose(3)}"
            path, text = sources[i % len(sources)]
            yield "call", "Read", json.dumps({"file_path": path}), text
            yield "call", "Bash", json.dumps({"command": "pytest -v"}), self.pytest(30)
            if i % 3 == 0:
                yield "call", "Bash", json.dumps({"command": "pip install -r requirements.txt"}), self.install(12)
            if i % 2 == 0:
                yield "call", "list_items", json.dumps({"page": i}), self.records(12)
            yield "assistant", f"{self.prose(10)}  \n\n\nI will change `{path}` next.\n\n```python\n{self.source(1)}\n```"
        yield "user", f"And now? {self.prose(1)}"


def chat(n: int = 6, seed: int = 7) -> Json:
    messages: list[Json] = [{"role": "system", "content": Session(1).prose(40)}]
    for at, step in enumerate(Session(seed).rounds(n)):
        if step[0] != "call":
            messages.append({"role": step[0], "content": step[1]})
            continue
        _, tool, arguments, result = step
        messages.append({"role": "assistant", "content": None, "tool_calls": [
            {"id": f"call_{at}", "type": "function", "function": {"name": tool, "arguments": arguments}}]})
        messages.append({"role": "tool", "tool_call_id": f"call_{at}", "content": result})
    return {"model": "m", "messages": messages}


def anthropic(n: int = 6, seed: int = 7) -> Json:
    messages: list[Json] = []
    for at, step in enumerate(Session(seed).rounds(n)):
        if step[0] != "call":
            messages.append({"role": step[0], "content": [{"type": "text", "text": step[1]}]})
            continue
        _, tool, arguments, result = step
        messages += ({"role": "assistant", "content": [
                         {"type": "tool_use", "id": f"toolu_{at}", "name": tool, "input": json.loads(arguments)}]},
                     {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"toolu_{at}",
                                                   "content": [{"type": "text", "text": result}]}]})
    return {"model": "m", "max_tokens": 100, "system": Session(1).prose(40), "messages": messages}


def responses(n: int = 6, seed: int = 7) -> Json:
    items: list[Json] = []
    for at, step in enumerate(Session(seed).rounds(n)):
        if step[0] != "call":
            kind = "output_text" if step[0] == "assistant" else "input_text"
            items.append({"type": "message", "role": step[0], "content": [{"type": kind, "text": step[1]}]})
            continue
        _, tool, arguments, result = step
        items += ({"type": "function_call", "call_id": f"call_{at}", "name": tool, "arguments": arguments},
                  {"type": "function_call_output", "call_id": f"call_{at}", "output": result})
    return {"model": "m", "instructions": Session(1).prose(40), "input": items, "store": False}


def gemini(n: int = 6, seed: int = 7) -> Json:
    contents: list[Json] = []
    for step in Session(seed).rounds(n):
        if step[0] != "call":
            contents.append({"role": "model" if step[0] == "assistant" else "user", "parts": [{"text": step[1]}]})
            continue
        _, tool, arguments, result = step
        contents += ({"role": "model", "parts": [{"functionCall": {"name": tool, "args": json.loads(arguments)}}]},
                     {"role": "user", "parts": [{"functionResponse": {"name": tool, "response": {"output": result}}}]})
    return {"systemInstruction": {"parts": [{"text": Session(1).prose(40)}]}, "contents": contents}


def ollama(n: int = 6, seed: int = 7) -> Json:
    messages: list[Json] = []
    for step in Session(seed).rounds(n):
        if step[0] != "call":
            messages.append({"role": step[0], "content": step[1]})
            continue
        _, tool, arguments, result = step
        messages += ({"role": "assistant", "content": "", "tool_calls": [
                         {"function": {"name": tool, "arguments": json.loads(arguments)}}]},
                     {"role": "tool", "tool_name": tool, "content": result})
    return {"model": "m", "messages": messages}


TALKS = {"openai-chat": chat, "anthropic": anthropic, "openai-responses": responses, "gemini": gemini, "ollama": ollama}
