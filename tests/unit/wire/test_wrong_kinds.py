"""A value of the wrong kind, anywhere in a request, an answer or a stream, is understood or refused: nothing else may happen."""
import copy
import json
from pathlib import Path

import pytest

from gateway.core.errors import GatewayError
from gateway.wire import WIRES
from gateway.wire.base import Outbound

MATRIX = Path(__file__).parents[2] / "golden" / "matrix"
WIRE_OF = {"chat": "openai-chat", "responses": "openai-responses", "messages": "anthropic", "gemini": "gemini", "ollama": "ollama"}
WRONG = [None, [], {}, [{}], {"type": []}, 0, -1, 1.5, True, "", "x"]
TO = Outbound(model="m", provider="p", stream=False)


def places(doc, path=()):
    yield path
    for key, inner in doc.items() if isinstance(doc, dict) else enumerate(doc) if isinstance(doc, list) else ():
        if key != "properties":                  # a schema is the caller's own affair
            yield from places(inner, (*path, key))


def damaged(doc):
    """The document once for each place and each wrong value."""
    for path in places(doc):
        for value in WRONG:
            if not path:
                yield path, value
                continue
            made = copy.deepcopy(doc)
            at = made
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = value
            yield path, made


def borne(use, doc):
    """The places at which something else than an answer or a refusal came of it."""
    broken = []
    for path, made in damaged(doc):
        try:
            use(json.dumps(made).encode())
        except GatewayError:
            pass
        except Exception as error:
            broken.append((path, repr(error)))
    return broken


@pytest.mark.parametrize("surface", WIRE_OF)
def test_in_a_request(surface):
    wire = WIRES[WIRE_OF[surface]]

    def use(raw):
        request = wire.parse_request(raw, "chat", "m", False)
        wire.build_request(request, TO)
        request.conversation, request.wire = wire.open(request), "another"
        for other in WIRES.values():
            try:
                other.build_request(request, TO)
            except GatewayError:
                pass

    assert not borne(use, json.loads((MATRIX / f"asked/{surface}.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("same", [True, False], ids=["same format", "another"])
@pytest.mark.parametrize("wire", WIRE_OF.values())
def test_in_an_answer(wire, same):
    assert not borne(lambda raw: WIRES[wire].parse_reply(raw, same), json.loads((MATRIX / f"answers/{wire}.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("same", [True, False], ids=["same format", "another"])
@pytest.mark.parametrize("wire", WIRE_OF.values())
def test_in_a_stream(wire, same):
    (file,) = [*MATRIX.glob(f"answers/{wire}.sse"), *MATRIX.glob(f"answers/{wire}.ndjson")]
    lines = [line.removeprefix("data: ") for line in file.read_text(encoding="utf-8").splitlines()]
    docs = [line.encode() for line in lines if line.startswith("{")]
    framed = b"%b\n" if wire == "ollama" else b"data: %b\n\n"

    def use(n):
        def with_frame(raw):
            decoder = WIRES[wire].decoder(same, "m", 1 << 20)
            for i, doc in enumerate(docs):
                decoder.feed(framed % (raw if i == n else doc))
            decoder.close()
        return with_frame

    assert not [found for n, doc in enumerate(docs) for found in borne(use(n), json.loads(doc))]
