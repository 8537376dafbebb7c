"""How do secrets lie on the disk? Under AES-256-GCM, with a master key that is not there, each bound to the place it belongs to.

A sealed text moved to another row does not open: its place is authenticated with it. Several master keys may be known at a time:
the first seals, all open, so that a key can be changed without losing what the old one sealed.
https://nvlpubs.nist.gov/nistpubs/Legacy/SP/nistspecialpublication800-38d.pdf (nonces are random, 96 bits)
"""
import base64
import binascii
import hashlib
import importlib.util
import os
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from gateway.core.errors import GatewayError, bad_request
from gateway.core.secret import Secret

EXTRA: Final = "pip install 'gateway[secrets]'"
KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
NEEDED: Final = ("Storing a provider's key needs a master key: put 32 random bytes (openssl rand -base64 32) into a file that "
                 "store.master_key names (${file:/…}), into systemd's credential gateway-master-key, or into GATEWAY_MASTER_KEY.")
_VERSION: Final = "v1"


class _Cipher(Protocol):
    """What is used of AESGCM."""

    def encrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None) -> bytes: ...

    def decrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None) -> bytes: ...


class Sealed(msgspec.Struct, frozen=True):
    """``key_id`` names the master key; it tells nothing about it."""
    key_id: str
    nonce: bytes
    data: bytes


class Sealer:
    """The master keys of this process. Without any, nothing can be sealed and nothing opened."""

    def __init__(self, keys: Sequence[Secret] = ()) -> None:
        self._keys: dict[str, bytes] = {}
        self.use(keys)

    def use(self, keys: Sequence[Secret]) -> None:
        """Each as 64 hexadecimal digits; the first seals from now on."""
        made = [bytes.fromhex(key.reveal()) for key in keys]
        self._keys = {key_id(key): key for key in made}

    def __bool__(self) -> bool:
        return bool(self._keys)

    @property
    def key_id(self) -> str:
        """Of the key that seals; empty without one."""
        return next(iter(self._keys), "")

    def seal(self, text: str, place: str) -> Sealed:
        """Raises bad_request where there is no master key."""
        if not self._keys:
            raise bad_request(NEEDED, "master_key")
        name, key = next(iter(self._keys.items()))
        nonce = os.urandom(NONCE_BYTES)
        return Sealed(name, nonce, _cipher(key).encrypt(nonce, text.encode(), place.encode()))

    def open(self, sealed: Sealed, place: str) -> str:
        """Raises ValueError: another master key, another place, or changed since."""
        key = self._keys.get(sealed.key_id)
        if key is None:
            raise ValueError(f"is sealed under the master key {sealed.key_id}, which is not configured")
        from cryptography.exceptions import InvalidTag
        try:
            return bytes(_cipher(key).decrypt(sealed.nonce, sealed.data, place.encode())).decode()
        except (InvalidTag, ValueError):
            raise ValueError("was changed since it was sealed, or belongs to something else") from None

    # ------------------------------------------------------------------ as one line of text
    def seal_line(self, text: str, place: str) -> str:
        sealed = self.seal(text, place)
        return ":".join((_VERSION, sealed.key_id, base64.b64encode(sealed.nonce).decode(), base64.b64encode(sealed.data).decode()))

    def open_line(self, line: str, place: str) -> str:
        """Raises ValueError."""
        version, *parts = line.split(":")
        if version != _VERSION or len(parts) != 3:
            raise ValueError("is not sealed")
        try:
            nonce, data = (base64.b64decode(part, validate=True) for part in parts[1:])
        except binascii.Error:
            raise ValueError("is no sealed text") from None
        return self.open(Sealed(parts[0], nonce, data), place)


def is_sealed(line: str) -> bool:
    return line.startswith(f"{_VERSION}:") and line.count(":") == 3


def key_id(key: bytes) -> str:
    """A name for a key, from which it cannot be found."""
    return hashlib.sha256(b"gateway master key\0" + key).hexdigest()[:12]


def available() -> bool:
    return importlib.util.find_spec("cryptography") is not None


def _cipher(key: bytes) -> _Cipher:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise GatewayError("internal", f"Sealing needs a package: {EXTRA}.") from None
    return AESGCM(key)
