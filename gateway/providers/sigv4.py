"""How is a request signed for AWS? Signature Version 4, for requests whose whole body is in memory.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""
import configparser
import functools
import hashlib
import hmac
import re
import time
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

import msgspec

from gateway.core.secret import Secret

ALGORITHM: Final = "AWS4-HMAC-SHA256"
_REGION: Final = re.compile(r"(?:[a-z]{2}|us-gov|us-iso[a-z]?)-[a-z]+-\d")


class AwsKeys(msgspec.Struct, frozen=True):
    """Long-lived or temporary credentials (the latter have a session token), and what they sign for."""
    access: str
    secret: Secret
    session: Secret = Secret("")
    region: str = "us-east-1"
    service: str = "bedrock"

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self.secret.reveal(), self.session.reveal())


def sign(keys: AwsKeys, method: str, url: str, body: bytes, wall: float, headers: Mapping[str, str] | None = None) -> dict[str, str]:
    """The headers that prove who asks. ``headers`` are signed as well; host and date always are."""
    parts = urlsplit(url)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(wall))
    digest = hashlib.sha256(body).hexdigest()
    made = {"X-Amz-Date": stamp, "X-Amz-Content-Sha256": digest}
    if keys.session:
        made["X-Amz-Security-Token"] = keys.session.reveal()
    signed = {name.lower(): " ".join(value.split()) for name, value in {**(headers or {}), **made, "Host": parts.netloc}.items()}
    names = ";".join(sorted(signed))
    canonical = "\n".join((method, canonical_path(parts.path), canonical_query(parts.query),
                           *(f"{name}:{signed[name]}" for name in sorted(signed)), "", names, digest))
    signature, scope = signature_of(keys, stamp, canonical)
    made["Authorization"] = f"{ALGORITHM} Credential={keys.access}/{scope}, SignedHeaders={names}, Signature={signature}"
    return made


def signature_of(keys: AwsKeys, stamp: str, canonical: str) -> tuple[str, str]:
    """(signature, scope) of a canonical request at this moment."""
    scope = f"{stamp[:8]}/{keys.region}/{keys.service}/aws4_request"
    text = "\n".join((ALGORITHM, stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    return hmac.new(_key(keys, stamp[:8]), text.encode(), "sha256").hexdigest(), scope


@functools.lru_cache(maxsize=256)
def _key(keys: AwsKeys, day: str) -> bytes:
    key = ("AWS4" + keys.secret.reveal()).encode()
    for word in (day, keys.region, keys.service, "aws4_request"):
        key = hmac.digest(key, word.encode(), "sha256")
    return key


def canonical_path(path: str) -> str:
    """Each segment is encoded once more than in the URL: the rule of every service but S3."""
    return "/".join([quote(segment, safe="-_.~") for segment in path.split("/")]) or "/"


def canonical_query(query: str) -> str:
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in parse_qsl(query, keep_blank_values=True))
    return "&".join([f"{name}={value}" for name, value in pairs])


# ---------------------------------------------------------------- what an operator writes
def read(text: str, region: str) -> AwsKeys:
    """Credentials as JSON, as an AWS credentials file (its default or first profile), or ``ID:SECRET[:TOKEN]``. Raises ValueError."""
    text = text.strip()
    if text.startswith("{"):
        try:
            found = {name.lower(): value for name, value in msgspec.json.decode(text, type=dict[str, object]).items()
                     if isinstance(value, str)}
        except msgspec.DecodeError:
            raise ValueError("is no valid JSON") from None
        return of(found, region)
    if "=" in text and "\n" in text or text.startswith("["):
        return of(_profile(text), region)
    parts = text.split(":", 2)
    if len(parts) < 2:
        raise ValueError("must be an AWS credentials file, JSON, or ACCESS_KEY_ID:SECRET_ACCESS_KEY")
    return of(dict(zip(("access_key_id", "secret_access_key", "session_token"), parts, strict=False)), region)


def of(found: Mapping[str, str], region: str) -> AwsKeys:
    """From named values; AWS writes the names in three ways."""
    def pick(*names: str) -> str:
        return next((found[name].strip() for name in names if found.get(name, "").strip()), "")
    access = pick("access_key_id", "aws_access_key_id", "accesskeyid")
    secret = pick("secret_access_key", "aws_secret_access_key", "secretaccesskey")
    if not access or not secret:
        raise ValueError("needs access_key_id and secret_access_key")
    session = pick("session_token", "aws_session_token", "sessiontoken", "token")
    return AwsKeys(access, Secret(secret), Secret(session), region or pick("region") or "us-east-1")


def _profile(text: str) -> dict[str, str]:
    file = configparser.ConfigParser(interpolation=None)
    try:
        file.read_string(text if text.lstrip().startswith("[") else "[default]\n" + text)
    except configparser.Error:
        raise ValueError("is no valid AWS credentials file") from None
    name = "default" if file.has_section("default") else next(iter(file.sections()), "")
    return dict(file[name]) if name else {}


def region_in(url: str) -> str:
    """The region that an address names (``bedrock-runtime.us-west-2.amazonaws.com``), or nothing."""
    found = _REGION.search(urlsplit(url).hostname or "")
    return found[0] if found else ""
