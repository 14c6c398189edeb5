"""Tokens for IAM logins of Amazon MSK: a URL with an AWS signature (version 4) as a bearer token.

Credentials come from the environment, or from the shared credentials file. A token is valid for
15 minutes, so every login gets a new one.
"""

import base64
import configparser
import hashlib
import hmac
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import msgspec

from headrace.errors import HeadraceError

LIFETIME_S = 900
_EMPTY = hashlib.sha256(b"").hexdigest()
_ALGORITHM = "AWS4-HMAC-SHA256"


class NoCredentials(HeadraceError):
    """There are no AWS credentials in the environment or in the shared file."""


class AwsCredentials(msgspec.Struct, frozen=True):
    """An AWS identity."""

    access_key: str
    secret_key: str
    session_token: str | None = None

    def __repr__(self) -> str:
        return f"AwsCredentials({self.access_key})"


def msk_token(region: str) -> str:
    """Return a new token for the cluster's region, with the credentials of this process."""
    return token(region, credentials(os.environ), time.time())


def token(region: str, identity: AwsCredentials, now_s: float) -> str:
    """Return the bearer token of one login."""
    host = f"kafka.{region}.amazonaws.com"
    action = {"Action": "kafka-cluster:Connect"}
    url = presigned(host, "/", action, identity, region, "kafka-cluster", now_s, LIFETIME_S, _EMPTY)
    return base64.urlsafe_b64encode(f"{url}&User-Agent=headrace".encode()).rstrip(b"=").decode()


def presigned(
    host: str,
    path: str,
    query: Mapping[str, str],
    identity: AwsCredentials,
    region: str,
    service: str,
    now_s: float,
    lifetime_s: int,
    payload_hash: str,
) -> str:
    """Return a URL whose query has the signature of a GET request."""
    moment = datetime.fromtimestamp(now_s, UTC).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{moment[:8]}/{region}/{service}/aws4_request"
    signed = {
        **query,
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": f"{identity.access_key}/{scope}",
        "X-Amz-Date": moment,
        "X-Amz-Expires": str(lifetime_s),
        "X-Amz-SignedHeaders": "host",
    }
    if identity.session_token:
        signed["X-Amz-Security-Token"] = identity.session_token
    canonical = "&".join(f"{quote(k, safe='')}={quote(signed[k], safe='')}" for k in sorted(signed))
    request = f"GET\n{path}\n{canonical}\nhost:{host}\n\nhost\n{payload_hash}"
    digest = hashlib.sha256(request.encode()).hexdigest()
    key = signing_key(identity.secret_key, moment[:8], region, service)
    signature = _mac(key, f"{_ALGORITHM}\n{moment}\n{scope}\n{digest}").hex()
    return f"https://{host}{path}?{canonical}&X-Amz-Signature={signature}"


def signing_key(secret_key: str, date: str, region: str, service: str) -> bytes:
    """Return the key of one day, region and service."""
    key = f"AWS4{secret_key}".encode()
    for part in (date, region, service, "aws4_request"):
        key = _mac(key, part)
    return key


def credentials(environment: Mapping[str, str]) -> AwsCredentials:
    """Return the identity in the environment, or in the shared credentials file."""
    if environment.get("AWS_ACCESS_KEY_ID") and environment.get("AWS_SECRET_ACCESS_KEY"):
        return AwsCredentials(
            environment["AWS_ACCESS_KEY_ID"],
            environment["AWS_SECRET_ACCESS_KEY"],
            environment.get("AWS_SESSION_TOKEN"),
        )
    path = environment.get("AWS_SHARED_CREDENTIALS_FILE") or str(Path("~/.aws/credentials"))
    return _shared(Path(path).expanduser(), environment.get("AWS_PROFILE") or "default")


def _shared(path: Path, profile: str) -> AwsCredentials:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(path)
        section = parser[profile]
        return AwsCredentials(
            section["aws_access_key_id"],
            section["aws_secret_access_key"],
            section.get("aws_session_token"),
        )
    except (KeyError, configparser.Error):
        raise NoCredentials(
            "no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or add the"
            f" profile {profile!r} to {path}"
        ) from None


def _mac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
