"""A secret opens only under its own master key, in its own place, unchanged; no two seals are alike."""
import json

import msgspec
import pytest

from gateway.core.errors import GatewayError
from gateway.core.secret import Secret
from gateway.store.seal import Sealer, is_sealed
from gateway.store.vault import FileVault

OLD, NEW = Secret("11" * 32), Secret("22" * 32)


@pytest.fixture
def sealer():
    return Sealer([OLD])


def test_what_was_sealed_opens_again_and_looks_different_each_time(sealer):
    one, two = sealer.seal("sk-secret", "a"), sealer.seal("sk-secret", "a")
    assert sealer.open(one, "a") == sealer.open(two, "a") == "sk-secret"
    assert one.nonce != two.nonce and one.data != two.data and b"secret" not in one.data and len(one.nonce) == 12


@pytest.mark.parametrize("change", [
    lambda sealed: msgspec.structs.replace(sealed, data=bytes([sealed.data[0] ^ 1]) + sealed.data[1:]),
    lambda sealed: msgspec.structs.replace(sealed, nonce=bytes(12)), lambda sealed: msgspec.structs.replace(sealed, nonce=b""),
    lambda sealed: msgspec.structs.replace(sealed, data=sealed.data[:-1]), lambda sealed: msgspec.structs.replace(sealed, data=b""),
])
def test_what_was_changed_does_not_open(sealer, change):
    with pytest.raises(ValueError, match="was changed"):
        sealer.open(change(sealer.seal("sk-secret", "a")), "a")


def test_a_sealed_text_in_another_place_does_not_open(sealer):
    with pytest.raises(ValueError, match="belongs to something else"):
        sealer.open(sealer.seal("sk-secret", "provider\0a\0key1"), "provider\0b\0key1")


def test_a_new_key_seals_and_the_old_one_still_opens(sealer):
    before, both = sealer.seal("sk-secret", "a"), Sealer([NEW, OLD])
    assert both.open(before, "a") == "sk-secret" and both.seal("x", "a").key_id == both.key_id != before.key_id
    with pytest.raises(ValueError, match="not configured"):
        Sealer([NEW]).open(before, "a")


def test_without_a_master_key_it_is_told_what_to_do():
    with pytest.raises(GatewayError, match="openssl rand -base64 32"):
        Sealer().seal("sk-secret", "a")


@pytest.mark.parametrize("line", ["", "v1", "v1:::", "v1:a:b", "v2:a:b:c", "v1:nobody:AAAA:AAAA", "v1:x:%%%%:AAAA", "plain"])
def test_a_line_that_is_none_is_no_crash(sealer, line):
    with pytest.raises(ValueError):
        sealer.open_line(line, "a")


def test_a_line_is_known_as_one(sealer):
    line = sealer.seal_line("sk-secret", "a")
    assert is_sealed(line) and sealer.open_line(line, "a") == "sk-secret" and not is_sealed("ya29.token")


async def test_tokens_lie_sealed_where_there_is_a_master_key(tmp_path, sealer):
    path = tmp_path / "tokens.json"
    await FileVault(path).keep("a/1 x", "first-token")
    assert "first-token" in path.read_text()
    vault = FileVault(path, sealer)
    assert await vault.load() == {"a/1 x": "first-token"}
    await vault.keep("b/1 y", "second-token")
    assert "token\"" not in path.read_text() and "first-token" not in path.read_text()
    assert await vault.load() == {"a/1 x": "first-token", "b/1 y": "second-token"}


async def test_tokens_of_another_master_key_are_left_as_they_are(tmp_path, sealer, caplog):
    path = tmp_path / "tokens.json"
    await FileVault(path, sealer).keep("a/1 x", "first-token")
    other = FileVault(path, Sealer([NEW]))
    assert await other.load() == {} and "a/1" in caplog.text and "first-token" not in caplog.text
    await other.keep("b/1 y", "second-token")
    assert await FileVault(path, Sealer([NEW, OLD])).load() == {"a/1 x": "first-token", "b/1 y": "second-token"}


async def test_tokens_are_sealed_anew(tmp_path, sealer):
    path = tmp_path / "tokens.json"
    await FileVault(path, sealer).keep("a/1 x", "first-token")
    assert await FileVault(path, Sealer([NEW, OLD])).reseal() == 1
    assert await FileVault(path, Sealer([NEW])).load() == {"a/1 x": "first-token"}
    with pytest.raises(ValueError):
        await FileVault(path, sealer).reseal()
    assert await FileVault(tmp_path / "none.json").reseal() == 0


async def test_tokens_swapped_between_accounts_do_not_open(tmp_path, sealer):
    path = tmp_path / "tokens.json"
    vault = FileVault(path, sealer)
    await vault.keep("a/1 x", "first-token")
    path.write_text(json.dumps({"b/1 y": json.loads(path.read_text())["a/1 x"]}))
    assert await vault.load() == {}
