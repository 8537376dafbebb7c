"""Personal data is found by its form and its check digits, and nothing else is."""
import pytest

from gateway.policy.guardrails import pii, secrets
from gateway.policy.guardrails.find import Scan

ALL = Scan(tuple(pii.KINDS.values()))


def found(text, scan=ALL):
    spans, edge = scan.spans(text, 0, True)
    assert edge == len(text)
    return [(kind.name, text[start:end]) for kind, start, end in spans]


@pytest.mark.parametrize(("text", "kind", "value"), [
    ("write to jo.doe+x@mail.example.co.uk.", "EMAIL", "jo.doe+x@mail.example.co.uk"),
    ("jürgen@bücher.example!", "EMAIL", "jürgen@bücher.example"),
    ("(a@b.io)", "EMAIL", "a@b.io"),
    ("我的邮箱是jo@x.com吗", "EMAIL", "jo@x.com"),
    ("card 4111 1111 1111 1111 12", "CREDIT_CARD", "4111 1111 1111 1111"),
    ("378282246310005", "CREDIT_CARD", "378282246310005"),
    ("5555-5555-5555-4444,", "CREDIT_CARD", "5555-5555-5555-4444"),
    ("pay DE89 3704 0044 0532 0130 00 and go", "IBAN", "DE89 3704 0044 0532 0130 00"),
    ("GB82WEST12345698765432", "IBAN", "GB82WEST12345698765432"),
    ("SSN 219-09-9999.", "SSN", "219-09-9999"),
    ("call +49 (0)30 1234-5678 now", "PHONE", "+49 (0)30 1234-5678"),
    ("(555) 123-4567", "PHONE", "(555) 123-4567"),
    ("tel 1-555-123-4567", "PHONE", "1-555-123-4567"),
    ("06 12 34 56 78", "PHONE", "06 12 34 56 78"),
    ("0171 1234567", "PHONE", "0171 1234567"),
    ("0049 30 1234567", "PHONE", "0049 30 1234567"),
    ("from 203.0.113.7.", "IP", "203.0.113.7"),
    ("at 2001:db8::1: fine", "IP", "2001:db8::1"),
])
def test_values_are_found(text, kind, value):
    assert found(text) == [(kind, value)]


@pytest.mark.parametrize("text", [
    "4111 1111 1111 1112", "DE88370400440532013000", "000-12-3456", "219-00-9999", "v1.2.3", "127.0.0.1 and ::1 and 0.0.0.0",
    "std::vector a::b", "12:30:45", "01/12/2026 10:30", "2026-11-30", "git@github.com:a/b.git", "@decorator", "a @ b", "x@y",
    "1732999999999", "version 10.2", "3.14159265358979", "[EMAIL_1]", "index 0123", "255.255.255.0",
])
def test_what_only_looks_like_it_is_left_alone(text):
    assert found(text) == []


@pytest.mark.parametrize(("text", "kind"), [
    ("sk-proj-" + "a1B2" * 10, "API_KEY"), ("ghp_" + "a1B2" * 9, "API_KEY"), ("AKIA" + "ABCD" * 4, "API_KEY"),
    ("AIza" + "a" * 35, "API_KEY"), ("xoxb-1234567890-abc", "API_KEY"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijk", "JWT"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----", "PRIVATE_KEY"),
    ("-----BEGIN PRIVATE KEY-----\nMIIB cut off", "PRIVATE_KEY"),
])
def test_credentials_are_found(text, kind):
    assert found("x " + text, Scan(secrets.KINDS)) == [(kind, text)]


@pytest.mark.parametrize("text", ["a" * 64, "skill-based-routing", "sk-short", "eyJ", "550e8400-e29b-41d4-a716-446655440000"])
def test_what_is_only_long_is_no_credential(text):
    assert found(text, Scan(secrets.KINDS)) == []


@pytest.mark.parametrize("text", ["1 " * 20_000, "a" * 50_000, "@" * 20_000, "0 12 " * 8_000, "a.b-" * 10_000, "+1" * 20_000,
                                  "DE89 " * 8_000, "::1" * 10_000, "4111 " * 8_000, "sk-" * 15_000, "eyJ" * 15_000])
def test_no_text_takes_for_ever(text):
    """The time limit of a test is the measure."""
    found(text)
    found(text, Scan(secrets.KINDS))
