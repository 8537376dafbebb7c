"""Identifiers: short, unique across a conversation, cheap."""
import itertools
import os

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SIGNS = bytes(ord(_ALPHABET[byte % 62]) for byte in range(256))
_PROCESS = os.urandom(6).hex()
_counter = itertools.count(1)


def token(length: int = 24) -> str:
    """Random letters and digits."""
    return os.urandom(length).translate(_SIGNS).decode()


def request_id() -> str:
    """Unique in this process by its number, across processes by their random names; no call of the system for each."""
    return f"req_{_PROCESS}{next(_counter):08x}"


def call_id() -> str:
    """For a tool call that came without an id. Random, so it never repeats within a conversation."""
    return "call_" + token(24)
