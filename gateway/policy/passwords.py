"""How is the operator's password kept, and is a given one right? scrypt with its parameters beside the hash.

``scrypt$n$r$p$salt$hash``, salt and hash in base64. One check costs some 50 ms and 16 MB: callers run it in a thread, one at a time.
"""
import base64
import binascii
import hashlib
import hmac
import os
from typing import Final

N: Final = 1 << 14
R: Final = 8
P: Final = 1
SALT_BYTES: Final = 16
HASH_BYTES: Final = 32
MAX_CHARS: Final = 1_024
_MAX_MEMORY: Final = 128 << 20


def hashed(password: str) -> str:
    """What to write into the configuration."""
    salt = os.urandom(SALT_BYTES)
    return "$".join(("scrypt", str(N), str(R), str(P), _text(salt), _text(_derive(password, salt, N, R, P, HASH_BYTES))))


def matches(password: str, stored: str) -> bool:
    """Is this the password behind a hash? Takes as long for a wrong one."""
    n, r, p, salt, wanted = _parts(stored)
    return hmac.compare_digest(_derive(password, salt, n, r, p, len(wanted)), wanted)


def well_formed(stored: str) -> bool:
    try:
        _parts(stored)
    except ValueError:
        return False
    return True


def _parts(stored: str) -> tuple[int, int, int, bytes, bytes]:
    """Raises ValueError, also for parameters that nobody should wait for."""
    pieces = stored.split("$")
    if len(pieces) != 6 or pieces[0] != "scrypt" or not all(piece.isdecimal() for piece in pieces[1:4]):
        raise ValueError("not a hash of ours")
    n, r, p = (int(piece[:9]) for piece in pieces[1:4])
    try:
        salt, wanted = base64.b64decode(pieces[4], validate=True), base64.b64decode(pieces[5], validate=True)
    except binascii.Error:
        raise ValueError("not base64") from None
    if not 2 <= n <= 1 << 17 or n & (n - 1) or not 1 <= r <= 16 or not 1 <= p <= 8 or 128 * n * r * p > _MAX_MEMORY \
            or len(salt) < 8 or not 16 <= len(wanted) <= 64:
        raise ValueError("parameters out of bounds")
    return n, r, p, salt, wanted


def _derive(password: str, salt: bytes, n: int, r: int, p: int, size: int) -> bytes:
    return hashlib.scrypt(password[:MAX_CHARS].encode("utf-8", "surrogateescape"), salt=salt, n=n, r=r, p=p, dklen=size,
                          maxmem=_MAX_MEMORY + (1 << 20))


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
