"""How does a Google service account ask for an access token? With an assertion that it signs itself (RS256).

https://developers.google.com/identity/protocols/oauth2/service-account#authorizingrequests
"""
import base64
import functools
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from gateway.core.secret import Secret
from gateway.providers.oauth import OAuth

TOKEN_URL: Final = "https://oauth2.googleapis.com/token"
SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
LIFE_S: Final = 3_600
EXTRA: Final = "pip install 'gateway[secrets]'"


class ServiceAccount(msgspec.Struct, frozen=True):
    """The fields of a key file that matter; ``key`` is PEM."""
    email: str
    key: Secret
    key_id: str = ""
    token_url: str = TOKEN_URL
    project: str = ""
    scope: str = SCOPE
    refresh: Secret = Secret("")

    @property
    def secrets(self) -> tuple[str, ...]:
        """The key's text never travels."""
        return ()

    def body(self, refresh: str, wall: float) -> bytes:
        return urlencode({"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
                          "assertion": assertion(self, wall)}).encode()


def assertion(account: ServiceAccount, wall: float) -> str:
    """A signed JWT, good for an hour."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    head = {"alg": "RS256", "typ": "JWT"} | ({"kid": account.key_id} if account.key_id else {})
    claims = {"iss": account.email, "scope": account.scope, "aud": account.token_url, "iat": int(wall), "exp": int(wall) + LIFE_S}
    text = b".".join(_base64(msgspec.json.encode(part)) for part in (head, claims))
    signature = private_key(account.key).sign(text, padding.PKCS1v15(), hashes.SHA256())
    return (text + b"." + _base64(signature)).decode()


@functools.lru_cache(maxsize=64)
def private_key(pem: Secret) -> Any:
    """Raises ValueError for what is no RSA key."""
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key(pem.reveal().encode(), None)
    if not isinstance(key, RSAPrivateKey):
        raise ValueError("holds a private key that is not RSA")
    return key


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


class _File(msgspec.Struct):
    type: str = ""
    client_email: str = ""
    private_key: str = ""
    private_key_id: str = ""
    project_id: str = ""
    token_uri: str = TOKEN_URL
    client_id: str = ""
    client_secret: str = ""
    refresh_token: str = ""
    quota_project_id: str = ""


def read(text: str) -> ServiceAccount | OAuth:
    """The content of a key file: a service account, or a user's own login (gcloud). Raises ValueError saying what is wrong."""
    try:
        file = msgspec.json.decode(text, type=_File)
    except msgspec.DecodeError:
        raise ValueError("must be the content of a Google credentials file (JSON)") from None
    if file.type == "authorized_user" or file.refresh_token:
        if not file.refresh_token or not file.client_id:
            raise ValueError("is a user's login without refresh_token or client_id")
        return OAuth(file.token_uri, file.client_id, Secret(file.client_secret), Secret(file.refresh_token))
    if not file.client_email or not file.private_key:
        raise ValueError("needs client_email and private_key, as a service account's key file has them")
    account = ServiceAccount(file.client_email, Secret(file.private_key), file.private_key_id, file.token_uri, file.project_id)
    try:
        private_key(account.key)
    except ImportError:
        raise ValueError(f"needs a package for RSA keys: {EXTRA}") from None
    except ValueError as error:
        raise ValueError(f"has a private_key that cannot be used: {str(error)[:80]}") from None
    return account


def project_in(text: str) -> str:
    """The project that a key file names, or nothing."""
    try:
        file = msgspec.json.decode(text, type=_File)
    except msgspec.DecodeError:
        return ""
    return file.project_id or file.quota_project_id
