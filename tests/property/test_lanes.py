"""Does a stream whose frames may leave unread tell the same story as one that is read frame by frame? On any cut of its bytes.

The loop is the pipeline's (attempt.read_turn) without its waiting: once with the fast lane, once without.
"""
import json
import os
import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core import events as ev
from gateway.stream.turn import Rules, Turn
from gateway.wire import WIRES
from gateway.wire.base import Shown
from tests.arch.source import ROOT
from tests.unit.wire import anthropic_turns as messages
from tests.unit.wire import frames as chat
from tests.unit.wire import responses_turns as responses

CORPUS = Path(os.environ.get("GATEWAY_CORPUS") or ROOT.parent / "shared" / "tools" / "corpus")
LIMIT = 1 << 20
ASKED = {"openai-chat": chat.asked(), "anthropic": messages.request(), "openai-responses": responses.asked()}
MADE = re.compile(r'chatcmpl-[0-9A-Za-z]{24}(?=")')           # ids that are drawn where the upstream has none
words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
texts = st.lists(words | st.sampled_from(["\n", '"', "\\", "<think>", "🦊", ' "sequence_number":0,']), min_size=1, max_size=8)


def told(wire, reads, fast, model="m", **rules):
    """What a client of the same format gets; the turn; how many reads went by unread."""
    turn, decoder, encoder, out, n_unread = Turn(Rules(**rules), 0.0), WIRES[wire].decoder(True, model, LIMIT), None, b"", 0
    shown = Shown(model=model, request=ASKED[wire], same=True, id="resp_t", created=9)

    def write(events):
        nonlocal encoder, out
        if events:
            encoder = encoder or WIRES[wire].encoder(shown)
            out += encoder.encode(events)

    for data in reads:
        if fast and turn.fast and getattr(encoder, "even", True) and decoder.run(data):
            turn.run(decoder.said)
            if hasattr(decoder, "take_back"):
                encoder.follow(decoder.said, decoder.number)
            out, n_unread = out + data, n_unread + 1
            continue
        write(turn.feed(decoder.feed(data), 0.0))
        if turn.done:
            break
    write((turn.feed(decoder.close(), 0.0) if not turn.done else []) + turn.eof(0.0))
    return out, turn, encoder, n_unread


def same_story(wire, reads, **rules):
    """Both lanes, compared; gives how many reads the fast one let pass."""
    quick, turn, encoder, n_unread = told(wire, reads, True, **rules)
    slow, judge, other, _ = told(wire, reads, False, **rules)
    assert MADE.sub("id", quick.decode()) == MADE.sub("id", slow.decode())
    assert (turn.finish, turn.committed, turn.touched) == (judge.finish, judge.committed, judge.touched)
    assert MADE.sub("id", repr(turn.usage)) == MADE.sub("id", repr(judge.usage))
    assert repr(turn.fault) == repr(judge.fault)
    assert getattr(encoder, "final", None) == getattr(other, "final", None)
    return n_unread


def per_frame(data):
    return [piece + b"\n\n" for piece in data.split(b"\n\n")[:-1]]


def cuts(data, seed):
    """Whole frames, one or some at a time, and now and then a read that ends anywhere."""
    chance, out, rest = random.Random(seed), [], per_frame(data)
    while rest:
        n = chance.choice([1, 1, 1, 2, 5])
        read, rest = b"".join(rest[:n]), rest[n:]
        at = chance.randrange(len(read)) if chance.random() < .15 else 0
        out += [read[:at], read[at:]] if at else [read]
    return out


def response_stream(pieces, thought, odd):
    """Text after some thinking; ``odd`` changes single frames as servers do."""
    before = responses.reasoning_frames(thought) if thought else []
    data = responses.stream(*before, *responses.text_frames(pieces, 1 if thought else 0))
    docs = responses.read(data)
    for at, name, value in odd:
        doc = docs[at % len(docs)]
        if name in doc:
            doc[name] = value
    return responses.sse(*docs)


odd_members = st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["sequence_number", "item_id", "output_index", "content_index"]),
                                 st.sampled_from([0, 3, 99, "msg_other", None])), max_size=2)


@given(texts, st.lists(words, max_size=2), odd_members, st.integers(0, 999), st.booleans())
@settings(max_examples=150, deadline=None)
def test_responses(pieces, thought, odd, seed, live):
    same_story("openai-responses", cuts(response_stream(pieces, thought, odd), seed), reasoning="live" if live else "hold")


@given(texts, st.lists(words, max_size=2), st.integers(0, 999), st.booleans())
@settings(max_examples=80, deadline=None)
def test_messages(pieces, thought, seed, live):
    first = messages.start(0, type="thinking", thinking="") + b"".join(
        messages.delta(0, "thinking_delta", thinking=piece) for piece in thought) + messages.stop(0) if thought else b""
    data = messages.opening() + first + messages.text_block(1 if thought else 0, *pieces) + messages.ending()
    same_story("anthropic", cuts(data, seed), model="m-up", reasoning="live" if live else "hold")


@given(texts, st.integers(0, 999))
@settings(max_examples=80, deadline=None)
def test_chat(pieces, seed):
    data = chat.sse(chat.chunk({"role": "assistant", "content": ""})) + chat.text(*pieces) + chat.sse(chat.chunk({}, "stop"), done=True)
    same_story("openai-chat", cuts(data, seed))


def test_nearly_all_frames_of_a_text_go_unread():
    pieces = [f"word {n} " for n in range(40)]
    assert same_story("openai-responses", per_frame(response_stream(pieces, [], []))) == 39
    assert same_story("openai-responses", per_frame(response_stream(pieces, ["hm"], []))) == 39
    data = messages.opening() + messages.text_block(0, *pieces) + messages.ending()
    assert same_story("anthropic", per_frame(data), model="m-up") == 39


def test_frames_that_were_numbered_anew_are_read():
    """A tag at the beginning becomes an item of its own: all later places and numbers are ours."""
    data = response_stream(["<think>hm</think>", "Hello", " you", " there"], [], [])
    assert same_story("openai-responses", per_frame(data)) == 0
    responses.sound(responses.read(told("openai-responses", per_frame(data), True)[0]))


@pytest.mark.parametrize("change", [
    lambda doc: {**doc, "sequence_number": 4}, lambda doc: {**doc, "delta": ""}, lambda doc: {**doc, "item_id": "msg_x"},
    lambda doc: {**doc, "output_index": 1}, lambda doc: {**doc, "content_index": 1}, lambda doc: {**doc, "delta": "\ud83e"},
    lambda doc: {**doc, "type": "response.refusal.delta"}, lambda doc: {**doc, "delta": 5},
    lambda doc: {k: v for k, v in doc.items() if k != "sequence_number"}])
def test_a_frame_that_is_another_is_read(change):
    reads = per_frame(response_stream([f"{n}" for n in range(6)], [], []))
    decoder = WIRES["openai-responses"].decoder(True, "m", LIMIT)
    for read in reads[:7]:
        decoder.feed(read)
    for n_frames, read in ((1, reads[7]), (2, reads[7] + reads[8])):
        assert decoder.run(read) == n_frames
        decoder.take_back()
    doc = json.loads(reads[7].split(b"data: ")[1])
    odd = b"event: response.output_text.delta\ndata: " + json.dumps(change(doc)).encode() + b"\n\n"
    assert decoder.run(odd) == decoder.run(reads[8] + odd) == decoder.run(reads[7][:-1]) == decoder.run(reads[7] + b": hi\n\n") == 0
    assert decoder.run(reads[7].replace(b"\n", b"\r\n")) == decoder.run(reads[7].replace(b'"x', b'"\xff')) == 0


def test_what_a_run_found_may_still_be_fed():
    reads = per_frame(response_stream(["a", "b", "c", "d"], [], []))
    decoder = WIRES["openai-responses"].decoder(True, "m", LIMIT)
    for read in reads[:6]:
        decoder.feed(read)
    assert decoder.run(reads[6]) == 1
    decoder.take_back()
    assert [event.text for event in decoder.feed(reads[6]) if type(event) is ev.Text] == ["c"]


RECORDED = sorted((CORPUS / "streams").glob("*/*.sse")) if CORPUS.is_dir() else []
FOLDERS = {"openai-chat": "openai-chat", "anthropic-messages": "anthropic", "anthropic": "anthropic",
           "openai-responses": "openai-responses"}


@pytest.mark.skipif(not RECORDED, reason="no recordings lie beside the repository")
@pytest.mark.parametrize("wire", sorted(ASKED))
def test_recordings(wire):
    files = [path for path in RECORDED if FOLDERS.get(path.parent.name) == wire]
    for path in files:
        data = path.read_bytes().replace(b"\r\n", b"\n")
        for seed in range(2):
            same_story(wire, cuts(data, seed), rescue=False)
