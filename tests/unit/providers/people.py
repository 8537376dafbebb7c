"""A provider to be refused by."""
from gateway.core.secret import Secret
from gateway.providers.registry import Account, Provider

KEY = "sk-own-1234567890abcdef"


def provider(**facts) -> Provider:
    return Provider(**({"id": "acme", "name": "Acme", "accounts": (Account(1, Secret(KEY)),)} | facts))
