"""How is a fresh access token asked for, and what does the answer mean? OAuth 2 refresh, without any I/O.

https://www.rfc-editor.org/rfc/rfc6749#section-6 · errors: section 5.2
"""
from typing import Final, Protocol
from urllib.parse import urlencode

import msgspec

from gateway.core.errors import GatewayError
from gateway.core.redact import redact
from gateway.core.secret import Secret

LEAD_S: Final = 300.0                    # a token is replaced this long before it expires, or at a quarter of a shorter life
DEFAULT_LIFE_S: Final = 3_600.0
# Words after which no further attempt can succeed: somebody has to sign in again.
FINAL: Final = frozenset({"invalid_grant", "invalid_client", "unauthorized_client", "refresh_token_reused", "invalid_token",
                          "access_denied", "token_revoked", "refresh_token_expired"})


class Grant(Protocol):
    """What a token can be had for."""

    @property
    def token_url(self) -> str: ...

    @property
    def refresh(self) -> Secret:
        """What the operator wrote; a rotated one takes its place. Empty for grants that have none."""
        ...

    def body(self, refresh: str, wall: float) -> bytes:
        """The form to post."""
        ...


class OAuth(msgspec.Struct, frozen=True):
    """[[providers]].oauth"""
    token_url: str
    client_id: str
    client_secret: Secret
    refresh: Secret
    scope: str = ""

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self.client_secret.reveal(), self.refresh.reveal())

    def body(self, refresh: str, wall: float) -> bytes:
        form = {"grant_type": "refresh_token", "refresh_token": refresh, "client_id": self.client_id}
        if not refresh:
            form = {"grant_type": "client_credentials", "client_id": self.client_id}
        if self.client_secret:
            form["client_secret"] = self.client_secret.reveal()
        if self.scope:
            form["scope"] = self.scope
        return urlencode(form).encode()


class Token(msgspec.Struct, frozen=True):
    """``life_s`` from when it was asked for; ``refresh``: a rotated refresh token, which alone is good from now on."""
    access: str
    life_s: float
    refresh: str = ""

    def __repr__(self) -> str:
        return f"Token({self.life_s:g} s)"

    @property
    def lead_s(self) -> float:
        return min(LEAD_S, self.life_s / 4)


class _Answer(msgspec.Struct):
    access_token: str = ""
    expires_in: float | str | None = None
    refresh_token: str | None = None
    id_token: str | None = None


class _Refusal(msgspec.Struct):
    error: str | dict[str, object] = ""
    error_description: str | None = None


class Revoked(GatewayError):
    """The grant is no longer good; only the operator can mend that."""

    def __init__(self, why: str) -> None:
        super().__init__("auth", f"The account's sign-in is no longer valid ({why}); somebody has to sign in again.")


def read(status: int, body: bytes) -> Token:
    """The token, or: Revoked where nobody needs to try again, another GatewayError where somebody may."""
    if status >= 400:
        raise _refused(status, body)
    try:
        said = msgspec.json.decode(body, type=_Answer)
    except msgspec.DecodeError:
        raise GatewayError("bad_reply", "The token endpoint did not answer with JSON.") from None
    if not said.access_token or not said.access_token.isascii() or any(sign <= " " for sign in said.access_token):
        raise GatewayError("bad_reply", "The token endpoint answered without an access token.")
    try:
        life_s = float(said.expires_in) if said.expires_in is not None else DEFAULT_LIFE_S
    except ValueError:
        life_s = DEFAULT_LIFE_S
    return Token(said.access_token, life_s if 0 < life_s < 1e9 else DEFAULT_LIFE_S, said.refresh_token or "")


def _refused(status: int, body: bytes) -> GatewayError:
    try:
        said = msgspec.json.decode(body, type=_Refusal)
    except msgspec.DecodeError:
        said = _Refusal()
    word = said.error if isinstance(said.error, str) else str(said.error.get("code") or said.error.get("type") or "")
    if word in FINAL or status in (400, 401, 403) and "reused" in (said.error_description or ""):
        return Revoked(redact(word))
    kind = "rate_limited" if status == 429 else "server_error" if status >= 500 else "auth"
    return GatewayError(kind, f"The token endpoint answered {status}{': ' + redact(word) if word else ''}.", upstream_status=status)
