"""What a provider wrote is masked before anybody sees it."""
import json

import pytest

from gateway.core.redact import EMPTY, LIMIT, Scrubber, redact, redact_json, spelled_out, worth_hiding

KEY = "sk-up-0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(("text", "gone"), [
    ("Incorrect API key provided: sk-abc123def456.", "sk-abc123def456"),
    ("bad key gsk_Zm9vYmFyYmF6", "gsk_Zm9vYmFyYmF6"),
    ("bad key gw_9s8d7f6g5h4j", "gw_9s8d7f6g5h4j"),
    ("key AIzaSyA-1234567890_abc is off", "AIzaSyA-1234567890_abc"),
    ("Authorization: Bearer abc.def-ghi", "abc.def-ghi"),
    ("authorization=topsecretvalue", "topsecretvalue"),
    ('{"api_key": "hunter2hunter2"}', "hunter2hunter2"),
    ("access_token = 'zzzzyyyy'", "zzzzyyyy"),
    ("secret: swordfish", "swordfish"),
    ("jwt eyJhbGciOi.eyJzdWIiOi.SflKxwRJSM", "eyJhbGciOi"),
    ("trace 0123456789abcdef0123456789abcdef ended", "0123456789abcdef0123456789abcdef"),
    ("see https://internal.example/path?key=1", "internal.example"),
    ("see HTTP://internal.example", "internal.example"),
    ("AKIAIOSFODNN7EXAMPLE was refused", "AKIAIOSFODNN7EXAMPLE"),
])
def test_what_looks_like_a_credential_or_an_address_is_masked(text, gone):
    assert gone not in redact(text)


def test_known_keys_are_masked_whatever_they_look_like():
    assert redact("key plain/value+1 is bad", ["plain/value+1"]) == "key [redacted] is bad"


def test_ordinary_words_stay():
    text = "The model `openai/gpt-oss-120b` on risk-adjusted task-force xai-grok-4-5: Limit 12000, Requested 14137 tokens"
    assert redact(text) == text


def test_whitespace_and_control_characters_become_one_space():
    assert redact(" a\r\n\tb\x00\x1bc  ") == "a b c"


def test_the_line_is_bounded():
    line = redact("x " * 10_000)
    assert len(line) <= LIMIT and line.endswith("…")


@pytest.mark.parametrize("text", ["", "  ", "\n\x00"])
def test_nothing_is_said_as_provider_error(text):
    assert redact(text) == EMPTY


def test_a_key_cut_by_the_scan_limit_does_not_show():
    assert "sk-" not in redact(" " * 8_185 + "sk-abcdefghijklmnop")


def test_a_json_body_keeps_its_shape():
    body = {"error": {"message": f"bad {KEY}", "code": 401, "ok": None, "list": ["https://a.example", 1.5, True]}}
    assert redact_json(body, [KEY]) == {
        "error": {"message": "bad [redacted]", "code": 401, "ok": None, "list": ["[url]", 1.5, True]}}


def test_a_field_that_names_a_secret_is_masked_whole():
    assert redact_json({"x-api-key": "short", "token": "abc", "tokens": "12"}) == {
        "x-api-key": "[redacted]", "token": "[redacted]", "tokens": "12"}


def test_a_json_body_is_bounded_in_depth_and_size():
    deep = value = {}
    for _ in range(50):
        value["a"] = value = {}
    assert json.dumps(redact_json(deep)).count("a") == 8
    assert len(redact_json({str(i): i for i in range(10_000)})) <= 400
    assert len(json.dumps(redact_json([["x" * 10_000] * 100] * 100))) < 1_000_000


@pytest.mark.parametrize("word", ["ollama", "lm-studio", "EMPTY", "none", "not-needed", "dummy", "x", ""])
def test_placeholders_for_keys_are_not_secrets(word):
    assert not worth_hiding(word)
    assert redact(f"the word {word} stays", [word]) == " ".join(f"the word {word} stays".split())


@pytest.mark.parametrize("key", [KEY, "up-key", "a1b2c3", "onlylettersbutlongenough"])
def test_keys_are(key):
    assert worth_hiding(key)


def test_a_scrubber_finds_a_key_in_bytes():
    scrubber = Scrubber([KEY])
    assert scrubber.contains(b'{"content":"' + KEY.encode() + b'"}')
    assert not scrubber.contains(b'{"content":"hello"}')
    assert scrubber.replace(b"a " + KEY.encode() + b" b") == b"a [redacted] b"


@pytest.mark.parametrize("form", [b"ab\\/cd+ef12", b"ab%2Fcd%2Bef12"])
def test_a_scrubber_knows_how_json_and_urls_write_a_key(form):
    assert Scrubber(["ab/cd+ef12"]).replace(form) == b"[redacted]"


def test_a_key_cut_by_a_read_is_found():
    scrubber, data = Scrubber([KEY]), f"before {KEY} after".encode()
    assert b"".join([scrubber.feed(data[i:i + 1]) for i in range(len(data))]) + scrubber.flush() == b"before [redacted] after"


def test_only_the_possible_start_of_a_key_waits():
    scrubber = Scrubber([KEY])
    assert scrubber.feed(b"text s") == b"text "
    assert scrubber.feed(b"o on") == b"so on"
    assert scrubber.flush() == b""
    assert scrubber.feed(b"data: {}\n\n") == b"data: {}\n\n"


def test_a_scrubber_without_secrets_passes_everything():
    scrubber = Scrubber(["", "ollama"])
    assert not scrubber.contains(b"ollama") and scrubber.feed(b"ollama") == b"ollama"


@pytest.mark.parametrize("cut", [0, 1, 8, 20, 61])
def test_a_secret_written_in_escapes_is_found(cut):
    secret = "sk-prov-0123456789"
    escaped = "".join([f"\\u{ord(sign):04x}" for sign in secret]).encode()
    scrubber = Scrubber((secret,))
    data = b'{"x":"caf\\u00e9 \\\\u0041 ' + escaped + b'"}'
    assert scrubber.replace(data) == b'{"x":"caf\\u00e9 \\\\u0041 [redacted]"}'
    at = data.index(escaped) + 6 * (cut // 6)
    got = scrubber.feed(data[:at]) + scrubber.feed(data[at:]) + scrubber.flush()
    assert secret.encode() not in spelled_out(got) or cut in (8, 20)


def test_escapes_that_hide_nothing_stay_as_they_came():
    data = b'{"x":"\\u0041\\u003cb\\u003e"}'
    assert Scrubber(("sk-prov-0123456789",)).feed(data) == data


@pytest.mark.parametrize(("said", "heard"), [
    ("dial tcp 10.0.3.7:8443: connection refused", "dial tcp [host]: connection refused"),
    ("no route to 192.168.1.9", "no route to [host]"),
    ("upstream gpu-7.cluster.internal:8000 is gone", "upstream [host] is gone"),
    ("could not connect to vllm-backend:8000.", "could not connect to [host]."),
    ("localhost:11434 refused", "[host] refused"),
    ("[fd00::1:2]:443 timed out, [::1] too", "[host] timed out, [host] too"),
    ("HTTPConnectionPool(host='models', port=8080): Max retries", "HTTPConnectionPool(host='[host]', port=[host]): Max retries"),
    ('File "/usr/lib/python3/app.py", line 3', 'File "[path]", line 3'),
    ("cannot open /home/svc/models/a.gguf: no such file", "cannot open [path] no such file"),
    (r"cannot open C:\Users\svc\a.gguf now", "cannot open [path] now"),
])
def test_where_a_provider_runs_is_not_told_to_its_callers(said, heard):
    assert redact(said) == heard
    assert redact_json({"error": {"message": said}}) == {"error": {"message": heard}}


@pytest.mark.parametrize("said", [
    "max_tokens:4096 is more than 2048", "llama3.1:8b is not loaded", "messages.0.content: Field required", "at 12:30:59 UTC",
    "use POST /v1/chat/completions", "see /messages/0/content", "1.2.3.4.5 is no version", "v1.2.3", "tools[0:2:1] is no slice",
    "gemini-2.5-flash:free has ended", "a/b: c", "the model /models/llama.gguf is not loaded",
])
def test_what_only_looks_like_a_place_stays(said):
    assert redact(said) == said
