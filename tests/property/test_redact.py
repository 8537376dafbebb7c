"""Redaction holds for any text."""
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.redact import LIMIT, Scrubber, redact, redact_json, worth_hiding

SECRET = st.text("abcdefXYZ0123456789-_", min_size=8, max_size=60).filter(lambda said: worth_hiding(said) and any(map(str.isalpha, said)))
TEXT = st.text(max_size=200)
JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
                    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5), max_leaves=20)


@settings(max_examples=150, deadline=None)
@given(TEXT, SECRET, TEXT)
def test_a_known_secret_never_survives(before, secret, after):
    line = redact(before + secret + after, [secret])
    assert secret not in line
    assert 0 < len(line) <= LIMIT and "\n" not in line


@settings(max_examples=100, deadline=None)
@given(JSON, SECRET)
def test_a_redacted_body_is_json_without_the_secret(value, secret):
    out = redact_json({"a": value, secret: [secret, {"b": secret}]}, [secret])
    assert secret not in json.dumps(out)


@settings(max_examples=150, deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=4), SECRET, st.lists(st.integers(0, 400), max_size=6))
def test_any_cut_of_the_bytes_is_scrubbed_alike(pieces, secret, cuts):
    data = secret.join(pieces).encode("utf-8", "surrogatepass")
    scrubber = Scrubber([secret])
    places = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    out = b"".join(scrubber.feed(data[a:b]) for a, b in zip(places, places[1:], strict=False)) + scrubber.flush()
    assert out == Scrubber([secret]).replace(data)
    assert secret.encode() not in out
