"""How does whoever is told something know that it was us? A signature over the time and the body."""
import hashlib
import hmac


def signed(secret: str, stamp: int, body: bytes) -> str:
    """What X-Gateway-Signature says; the stamp is what X-Gateway-Timestamp says."""
    return "sha256=" + hmac.new(secret.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
