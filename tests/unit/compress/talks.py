"""Conversations for tests of engines: chat messages in short."""
import json

from gateway.compress import plan, wires
from gateway.compress.filters import builtin

FILTERS = builtin()
LINES = "\n".join(f"The reader of table {name} waits for its worker, and that is all." for name in ("red", "green", "blue"))


def user(text="Go on."):
    return {"role": "user", "content": text}


def answer(text):
    return {"role": "assistant", "content": text}


def called(id_, tool, arguments, result):
    """A call and its result."""
    return [{"role": "assistant", "content": None, "tool_calls": [
        {"id": id_, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}]},
        {"role": "tool", "tool_call_id": id_, "content": result}]


def bash(id_, command, result):
    return called(id_, "bash", {"command": command}, result)


def body(*messages):
    return json.dumps({"model": "m", "messages": [m for one in messages for m in (one if isinstance(one, list) else [one])]}).encode()


def compressed(raw, mode="lossless", target=0, wire="openai-chat", engines=plan.ENGINES):
    """(the texts that are sent, what was done)."""
    talk = wires.read(wire, raw)
    talk.filters = FILTERS
    outcome = plan.compress(talk, plan.Aim(mode, len(raw) // 4, target), engines=engines)
    return [segment.text for segment in talk.segments], outcome


def stage(outcome, name):
    return next(stage for stage in outcome.stages if stage.engine == name)
