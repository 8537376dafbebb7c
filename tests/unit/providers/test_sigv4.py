"""Signatures are those of AWS's own examples; credentials are read in every form that AWS writes them in."""
import pytest

from gateway.core.secret import Secret
from gateway.providers.sigv4 import AwsKeys, _key, canonical_path, canonical_query, read, region_in, sign, signature_of

# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html and its test suite
EXAMPLE = AwsKeys("AKIDEXAMPLE", Secret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"), region="us-east-1", service="service")
STAMP = "20150830T123600Z"
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def canonical(method):
    return f"{method}\n/\n\nhost:example.amazonaws.com\nx-amz-date:{STAMP}\n\nhost;x-amz-date\n{EMPTY}"


@pytest.mark.parametrize(("method", "signature"), [
    ("GET", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
    ("POST", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
])
def test_the_vanilla_requests_of_the_test_suite(method, signature):
    assert signature_of(EXAMPLE, STAMP, canonical(method)) == (signature, "20150830/us-east-1/service/aws4_request")


def test_the_key_of_the_documentation():
    keys = AwsKeys("x", EXAMPLE.secret, region="us-east-1", service="iam")
    assert _key(keys, "20150830").hex() == "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"


def test_a_call_carries_date_digest_token_and_signature():
    keys = AwsKeys("AKID", Secret("s"), Secret("session"), "eu-west-1")
    made = sign(keys, "POST", "https://bedrock-runtime.eu-west-1.amazonaws.com/model/a%3A0/converse", b"{}", 1_440_938_160,
                {"Content-Type": "application/json"})
    assert made["X-Amz-Date"] == STAMP and made["X-Amz-Security-Token"] == "session"
    assert made["Authorization"].startswith(
        "AWS4-HMAC-SHA256 Credential=AKID/20150830/eu-west-1/bedrock/aws4_request, "
        "SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token, Signature=")
    assert "s" not in made.values()


def test_paths_are_encoded_once_more_and_queries_sorted():
    assert canonical_path("/model/a%3A0/converse") == "/model/a%253A0/converse"
    assert canonical_path("") == "/"
    assert canonical_query("b=2&a=x%20y&a=") == "a=&a=x%20y&b=2"


@pytest.mark.parametrize("text", [
    '{"access_key_id": "AK", "secret_access_key": "S", "session_token": "T"}',
    '{"AccessKeyId": "AK", "SecretAccessKey": "S", "SessionToken": "T"}',
    "[default]\naws_access_key_id = AK\naws_secret_access_key = S\naws_session_token = T\n",
    "aws_access_key_id = AK\naws_secret_access_key = S\naws_session_token = T\n",
    "AK:S:T",
])
def test_credentials_are_read_in_every_form(text):
    keys = read(text, "")
    assert (keys.access, keys.secret.reveal(), keys.session.reveal(), keys.region) == ("AK", "S", "T", "us-east-1")
    assert "S" not in repr(keys).replace("Secret", "").replace("AwsKeys", "")


@pytest.mark.parametrize("text", ["", "AK", "{", '{"access_key_id": "x"}', "[a\nb", "[default]\nx = y\n"])
def test_what_is_none_is_refused(text):
    with pytest.raises(ValueError, match="credentials|JSON|access_key_id"):
        read(text, "")


def test_an_address_names_its_region():
    assert region_in("https://bedrock-runtime.us-gov-west-1.amazonaws.com") == "us-gov-west-1"
    assert region_in("http://127.0.0.1:1") == ""
