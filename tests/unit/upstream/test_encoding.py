"""Compressed bodies are opened piece by piece, whatever their label and however they are cut."""
import gzip
import random
import tracemalloc
import zlib

import brotli
import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.errors import GatewayError
from gateway.upstream import encoding
from gateway.upstream.encoding import PIECE, Decoded, Layers, codings, open_body

TEXT = b'data: {"choices":[{"delta":{"content":"caf\xc3\xa9"}}]}\n\n' * 40


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACK = {"gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress, "zstd": zstd.compress}


@pytest.mark.parametrize("coding", PACK)
@settings(max_examples=25, deadline=None)
@given(data=st.binary(max_size=400) | st.just(TEXT), cuts=st.lists(st.integers(1, 40), max_size=8))
def test_any_cut_of_the_bytes_gives_the_same_body(coding: str, data: bytes, cuts: list[int]) -> None:
    packed = PACK[coding](data)
    opener, got, at = Decoded(coding), [], 0
    for cut in (*cuts, len(packed)):
        got += opener.feed(packed[at:at + cut])
        at += cut
    got += opener.feed(packed[at:]) if at < len(packed) else ()
    got += opener.close()
    assert b"".join(got) == data


@pytest.mark.parametrize("coding", PACK)
@pytest.mark.parametrize("plain", [TEXT, b"{}", b"", b'{"error":{"message":"no"}}', b"<html>busy</html>" * 3], ids=len)
def test_a_plain_body_under_a_wrong_label_is_plain(coding: str, plain: bytes) -> None:
    assert open_body(plain, coding, 1 << 20) == plain


def test_deflate_without_its_header_is_understood() -> None:
    assert open_body(raw_deflate(TEXT), "deflate", 1 << 20) == TEXT


def test_members_and_frames_that_follow_each_other_are_one_body() -> None:
    assert open_body(gzip.compress(b"one ") + gzip.compress(b"two"), "gzip", 100) == b"one two"
    assert open_body(zstd.compress(b"one ") + zstd.compress(b"two"), "zstd", 100) == b"one two"
    assert open_body(gzip.compress(b"one") + b"\0" * 20, "gzip", 100) == b"one"


def test_codings_are_opened_in_reverse_order() -> None:
    assert open_body(brotli.compress(gzip.compress(TEXT)), "gzip, br", 1 << 20) == TEXT
    assert codings("GZIP, identity") == ["gzip"]


@pytest.mark.parametrize("header", ["compress", "gzip, unknown", "gzip, gzip, gzip, gzip"])
def test_codings_that_nobody_knows_are_refused(header: str) -> None:
    with pytest.raises(ValueError):
        codings(header)


@pytest.mark.parametrize("coding", PACK)
def test_a_body_that_ends_early_is_told_apart(coding: str) -> None:
    packed = PACK[coding](bytes(range(256)) * 20)
    with pytest.raises(GatewayError) as caught:
        open_body(packed[:len(packed) - 6], coding, 1 << 20)
    assert caught.value.kind == "truncated"


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "deflate"])
def test_rubbish_is_a_bad_reply(coding: str) -> None:
    packed = bytearray(PACK[coding](bytes(range(256)) * 20))
    packed[6:60] = b"\xff" * 54
    with pytest.raises(GatewayError) as caught:
        open_body(bytes(packed), coding, 1 << 20)
    assert caught.value.kind in ("bad_reply", "truncated")


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "deflate"])
def test_a_bomb_costs_its_readers_limit_and_no_more(coding: str) -> None:
    bomb = brotli.compress(bytes(60 << 20), quality=1) if coding == "br" else PACK[coding](bytes(60 << 20))
    tracemalloc.start()
    with pytest.raises(OverflowError):
        open_body(bomb, coding, 1 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


def test_pieces_are_bounded_and_a_bomb_without_a_limit_is_noticed() -> None:
    sizes = []
    with pytest.raises(GatewayError, match="out of proportion"):
        for piece in Layers(["gzip"]).feed(gzip.compress(bytes(60 << 20))):
            sizes.append(len(piece))
    assert max(sizes) <= PIECE


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
def test_a_body_of_countless_members_is_refused(pack) -> None:
    coding = "gzip" if pack is gzip.compress else "zstd"
    assert open_body(pack(b"x") * 60, coding, 100) == b"x" * 60
    with pytest.raises(GatewayError, match="more than 64 compressed parts"):
        open_body(pack(b"") * 100_000, coding, 100)


def test_a_long_body_that_holds_nothing_is_refused() -> None:
    empty_stored_block = b"\x00\x00\x00\xff\xff"
    with pytest.raises(GatewayError, match="holds nothing"):
        open_body(empty_stored_block * 100_000, "deflate", 100)


@pytest.mark.parametrize("coding", PACK)
def test_a_step_sees_no_more_than_a_window_of_a_large_body(coding: str, monkeypatch) -> None:
    data = random.Random(1).randbytes(600_000)
    seen: list[int] = []
    real = encoding._opener

    def watched(name: str, first: bytes):
        opener = real(name, first)
        step = opener.step
        opener.step = lambda given: (seen.append(len(given)), step(given))[1]
        return opener
    monkeypatch.setattr(encoding, "_opener", watched)
    assert open_body(PACK[coding](data), coding, 1 << 20) == data
    assert max(seen) <= encoding.WINDOW
