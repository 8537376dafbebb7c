"""What is kept of a body holds no secret, nor the part of one that was left when the body was cut."""
import msgspec
import pytest

from gateway.store.pressing import opened, pressed

SECRET = "plain provider token 12345"


class Taped(msgspec.Struct):
    secrets: tuple[str, ...]
    request: bytes
    n_request: int
    response: bytes = b""
    n_response: int = 0


def kept(data: bytes, n_bytes: int) -> bytes:
    ((_, _, encoding, _, _, _, packed),) = pressed(1, Taped((SECRET, "other"), data, n_bytes))
    return opened(encoding, packed)


@pytest.mark.parametrize("n_left", range(1, len(SECRET)))
def test_a_secret_that_was_cut_leaves_nothing_behind(n_left):
    assert kept(b"before " + SECRET[:n_left].encode(), 1_000) == b"before "


def test_what_was_not_cut_keeps_its_end():
    assert kept(b"before p", 8) == b"before p"
    assert SECRET.encode() not in kept(b"before " + SECRET.encode() + b" after", 1_000)
