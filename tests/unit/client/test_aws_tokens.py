"""Signatures against the examples of AWS's documentation."""

import base64
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from headrace.client.aws_tokens import (
    AwsCredentials,
    NoCredentials,
    credentials,
    presigned,
    signing_key,
    token,
)
from headrace.client.properties import for_librdkafka
from headrace.client.security import Security

ADA = AwsCredentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
MOMENT_S = 1_369_353_600  # 2013-05-24T00:00:00Z


def test_a_key_is_derived_as_in_the_example() -> None:
    """CLD-4"""
    key = signing_key("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "20120215", "us-east-1", "iam")
    assert key.hex() == "f4780e2d9f65fa895f9c67b32ce1baf0b0d8a43505a000a1a9e090d414db404d"


def test_a_url_is_signed_as_in_the_example() -> None:
    """CLD-4: the example of a presigned URL of S3."""
    host = "examplebucket.s3.amazonaws.com"
    url = presigned(
        host, "/test.txt", {}, ADA, "us-east-1", "s3", MOMENT_S, 86_400, "UNSIGNED-PAYLOAD"
    )
    signature = "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
    assert url.endswith(f"&X-Amz-Signature={signature}")


def test_a_token_asks_for_a_connection_to_the_clusters_of_a_region() -> None:
    """CLD-4"""
    found = token("eu-west-1", AwsCredentials("A", "B", "session/token"), MOMENT_S)
    url = urlsplit(base64.urlsafe_b64decode(found + "=" * (-len(found) % 4)).decode())
    query = {name: values[0] for name, values in parse_qs(url.query).items()}
    assert (url.netloc, url.path) == ("kafka.eu-west-1.amazonaws.com", "/")
    assert query["Action"] == "kafka-cluster:Connect"
    assert query["X-Amz-Credential"] == "A/20130524/eu-west-1/kafka-cluster/aws4_request"
    assert query["X-Amz-Security-Token"] == "session/token"
    assert query["X-Amz-Expires"] == "900"


def test_credentials_come_from_the_environment_or_from_the_shared_file(tmp_path: Path) -> None:
    """CLD-4"""
    file = tmp_path / "credentials"
    file.write_text("[work]\naws_access_key_id = F\naws_secret_access_key = %S\n")
    shared = {"AWS_SHARED_CREDENTIALS_FILE": str(file), "AWS_PROFILE": "work"}
    assert credentials(shared) == AwsCredentials("F", "%S")
    given = {"AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "S"}
    assert credentials({**shared, **given}) == AwsCredentials("E", "S")


def test_missing_credentials_are_an_error_that_names_both_places(tmp_path: Path) -> None:
    path = str(tmp_path / "none")
    with pytest.raises(NoCredentials, match=f"AWS_ACCESS_KEY_ID.*'default' to {path}"):
        credentials({"AWS_SHARED_CREDENTIALS_FILE": path})


def test_every_login_of_a_client_has_a_new_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """CLD-4: librdkafka and the wire client alike."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "E")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "S")
    settings = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.aws.region": "eu-west-1",
    }
    signed, _ = for_librdkafka(settings)["oauth_cb"](None)
    sasl = Security.of(settings).sasl
    assert sasl is not None
    assert sasl.token is not None
    assert sasl.token()[:80] == signed[:80]


def test_a_secret_key_is_not_shown() -> None:
    assert "wJal" not in repr(ADA)
