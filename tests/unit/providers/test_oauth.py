"""What is posted to a token endpoint, and what its answers mean."""
from urllib.parse import parse_qs

import pytest

from gateway.core.errors import GatewayError
from gateway.core.secret import Secret
from gateway.providers import gcp
from gateway.providers.oauth import OAuth, Revoked, read

GRANT = OAuth("https://t.example/token", "id", Secret("secret"), Secret("r0"), "a b")


def test_a_refresh_is_a_form():
    assert parse_qs(GRANT.body("r1", 0).decode()) == {
        "grant_type": ["refresh_token"], "refresh_token": ["r1"], "client_id": ["id"], "client_secret": ["secret"], "scope": ["a b"]}


def test_without_a_refresh_token_the_client_asks_for_itself():
    assert parse_qs(GRANT.body("", 0).decode())["grant_type"] == ["client_credentials"]


@pytest.mark.parametrize(("body", "life_s"), [(b'{"access_token":"t","expires_in":60}', 60.0), (b'{"access_token":"t","expires_in":"60"}', 60.0),
                                              (b'{"access_token":"t"}', 3600.0), (b'{"access_token":"t","expires_in":-1}', 3600.0),
                                              (b'{"access_token":"t","expires_in":"soon"}', 3600.0)])
def test_a_token_lives_as_long_as_is_said(body, life_s):
    token = read(200, body)
    assert (token.access, token.life_s) == ("t", life_s) and token.lead_s == min(300, life_s / 4)


@pytest.mark.parametrize(("status", "body", "kind", "final"), [
    (400, b'{"error":"invalid_grant","error_description":"Token has been expired or revoked."}', "auth", True),
    (401, b'{"error":"invalid_client"}', "auth", True),
    (400, b'{"error":{"code":"refresh_token_reused"}}', "auth", True),
    (400, b'{"error":"invalid_request"}', "auth", False),
    (429, b"", "rate_limited", False), (503, b"<html>", "server_error", False), (200, b"<html>", "bad_reply", False),
    (200, b"{}", "bad_reply", False), (200, b'{"access_token":"a\\r\\nb"}', "bad_reply", False),
])
def test_a_refusal_says_whether_trying_again_helps(status, body, kind, final):
    with pytest.raises(GatewayError) as told:
        read(status, body)
    assert told.value.kind == kind and isinstance(told.value, Revoked) == final


@pytest.fixture(scope="module")
def key():
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    made = rsa.generate_private_key(65537, 2048)
    return made, made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def file(pem, **more):
    import json
    return json.dumps({"type": "service_account", "client_email": "a@p.iam", "private_key": pem, "private_key_id": "k1",
                       "project_id": "p", "token_uri": "https://t.example/token", **more})


def test_a_service_account_signs_its_own_assertion(key):
    import base64
    import json

    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    account = gcp.read(file(key[1]))
    form = parse_qs(account.body("", 1_700_000_000.5).decode())
    assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    head, claims, signature = (base64.urlsafe_b64decode(part + "==") for part in form["assertion"][0].split("."))
    assert json.loads(head) == {"alg": "RS256", "typ": "JWT", "kid": "k1"}
    assert json.loads(claims) == {"iss": "a@p.iam", "scope": gcp.SCOPE, "aud": "https://t.example/token",
                                  "iat": 1_700_000_000, "exp": 1_700_003_600}
    key[0].public_key().verify(signature, form["assertion"][0].rpartition(".")[0].encode(), padding.PKCS1v15(), hashes.SHA256())


def test_a_users_own_login_is_a_refresh():
    grant = gcp.read('{"type":"authorized_user","client_id":"c","client_secret":"s","refresh_token":"r"}')
    assert isinstance(grant, OAuth) and grant.token_url == gcp.TOKEN_URL and grant.refresh.reveal() == "r"


@pytest.mark.parametrize("text", ["", "x", "{}", '{"client_email":"a"}', file("no key"), '{"type":"authorized_user"}'])
def test_what_is_no_key_file_is_refused(text):
    with pytest.raises(ValueError, match=r"\w"):
        gcp.read(text)
