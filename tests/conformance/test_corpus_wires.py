"""Recorded answers of Bedrock, Cohere, Ollama and Vertex decode to what they hold, whatever the cut of the bytes.

The recordings lie beside the repository, or where GATEWAY_CORPUS says; without them there is nothing to do.
"""
import json
import os
import random
from pathlib import Path

import pytest

from gateway.core import events as ev
from gateway.wire import WIRES
from gateway.wire.anthropic.schema import STOP_IN as CLAUDE_STOPS
from gateway.wire.bedrock_converse.schema import STOP_IN as BEDROCK_STOPS
from gateway.wire.cohere.schema import STOP_IN as COHERE_STOPS
from tests.arch.source import ROOT

CORPUS = Path(os.environ.get("GATEWAY_CORPUS") or ROOT.parent / "shared" / "tools" / "corpus")
MANIFEST = CORPUS / "manifest.jsonl"
LINES = [json.loads(line) for line in MANIFEST.read_text(encoding="utf-8").splitlines()] if MANIFEST.is_file() else []

# API of a recording -> our wire, and its words for endings
KNOWN = {
    "bedrock-converse": ("bedrock-converse", BEDROCK_STOPS),
    "cohere": ("cohere", COHERE_STOPS),
    "ollama": ("ollama", {}),
    "gemini": ("gemini", {"STOP": "stop", "MAX_TOKENS": "length"}),
    "anthropic-messages": ("anthropic", CLAUDE_STOPS),
}
# Tools that the provider runs itself are no calls of the client's (contract 7); the recordings' facts count them.
SERVED = {"nova_grounding", "nova_code_interpreter"}
# Text that the recordings' facts leave out, since it stands beside its sources.
CITED = "citations-with-bedrock"

pytestmark = pytest.mark.skipif(not LINES, reason="no recordings lie beside the repository")
FILES = [line for line in LINES if line["subapi"] in KNOWN and line["kind"] in ("stream", "json")
         and line["provider"] in ("bedrock", "cohere", "ollama", "vertex")]


def folded(events):
    """The neutral turn in the words of the manifest."""
    calls, order = {}, []
    for event in events:
        if isinstance(event, ev.ToolDelta):
            if event.index not in calls:
                order.append(event.index)
            had = calls.setdefault(event.index, {"id": "", "name": "", "arguments": ""})
            had["id"], had["name"] = had["id"] or event.id, had["name"] or event.name
            had["arguments"] += event.arguments
    return {
        "text": "".join(event.text for event in events if isinstance(event, ev.Text)),
        "reasoning": "".join(event.text for event in events if isinstance(event, ev.Reasoning)),
        "calls": [calls[index] for index in order],
        "finish": next((event.reason for event in events if isinstance(event, ev.Finish)), None),
        "usage": next((event for event in reversed(events) if isinstance(event, ev.Usage)), None),
        "fault": next((event.error for event in events if isinstance(event, ev.Fault)), None),
    }


def decoded(line, cut):
    wire = WIRES[KNOWN[line["subapi"]][0]]
    data = (CORPUS / line["path"]).read_bytes()
    if line["kind"] == "json":
        return folded(wire.parse_reply(data, False))
    decoder, events, at = wire.decoder(False, "", 1 << 25), [], 0
    chance = random.Random(7)
    while at < len(data):
        size = {"whole": len(data), "bytes": 1, "random": chance.randrange(1, 400)}[cut]
        events += decoder.feed(data[at:at + size])
        at += size
    return folded(events + decoder.close())


def arguments(text):
    return json.loads(text) if text and text.strip() else {}


@pytest.mark.parametrize("line", FILES, ids=lambda line: Path(line["path"]).stem)
def test_a_recording_decodes_to_what_it_holds(line):
    wanted, stops = line["expected"], KNOWN[line["subapi"]][1]
    got = decoded(line, "whole")
    if CITED in line["path"]:
        assert got["text"]
    else:
        assert got["text"] == (wanted["text"] or "")
    assert got["reasoning"] == wanted.get("tool_plan", "") + (wanted["reasoning"] or "")
    calls = [call for call in wanted["tool_calls"] if call["name"] not in SERVED]
    assert [(call["name"], arguments(call["arguments"])) for call in got["calls"]] \
        == [(call["name"], arguments(call["arguments"])) for call in calls]
    assert [call["id"] for call in got["calls"] if call["id"]] == [call["id"] for call in calls if call["id"]]
    if wanted.get("error"):
        assert got["fault"] is not None and got["fault"].message == wanted["error"]["message"]
        return
    reason = stops.get(wanted["finish_reason"], wanted["finish_reason"])
    assert got["finish"] == reason or calls and got["finish"] == "tool_calls"
    usage = wanted["usage"]
    if usage and line["subapi"] in ("bedrock-converse", "cohere", "ollama"):
        cached = (usage["cache_read_tokens"] or 0) + (usage["cache_write_tokens"] or 0) if line["subapi"] == "bedrock-converse" else 0
        assert (got["usage"].input, got["usage"].output) == ((usage["input_tokens"] or 0) + cached, usage["output_tokens"])
        assert got["usage"].cached == (usage["cache_read_tokens"] or 0)
        assert got["usage"].reasoning == (usage["reasoning_tokens"] or 0)


@pytest.mark.parametrize("cut", ["bytes", "random"])
@pytest.mark.parametrize("line", [line for line in FILES if line["kind"] == "stream" and line["bytes"] < 12_000],
                         ids=lambda line: Path(line["path"]).stem)
def test_any_cut_of_the_bytes_gives_the_same_turn(line, cut):
    got, whole = decoded(line, cut), decoded(line, "whole")
    assert {**got, "fault": repr(got["fault"])} == {**whole, "fault": repr(whole["fault"])}
