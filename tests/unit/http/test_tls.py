"""Certificates of servers, and the names of clients in theirs."""

import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

from headrace.http.tls import (
    CERTIFICATE_KEY,
    ClientCertificates,
    InvalidTls,
    ServerTls,
    certificate_principal,
    distinguished_name,
)


def written(tmp_path: Path) -> Path:
    path = tmp_path / "server.pem"
    trustme.CA().issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(path))
    return path


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        (((("commonName", "ada"),),), "CN=ada"),
        (
            ((("organizationName", "Shop, Inc"),), (("commonName", "ada"),)),
            "CN=ada,O=Shop\\, Inc",
        ),
        (((("1.2.3", "x"), ("commonName", "ada")),), "1.2.3=x+CN=ada"),
        ((), None),
    ],
)
def test_a_subject_is_written_as_kafka_writes_it(subject: Any, name: str | None) -> None:
    assert distinguished_name({"subject": subject}) == name


def test_the_certificate_of_a_connection_is_in_its_requests() -> None:
    assert certificate_principal({"state": {CERTIFICATE_KEY: "CN=ada"}}) == "CN=ada"
    assert certificate_principal({"state": {}}) is None
    assert certificate_principal({}) is None


@pytest.mark.parametrize(
    ("asked", "mode"),
    [
        (ClientCertificates.NONE, ssl.CERT_NONE),
        (ClientCertificates.REQUESTED, ssl.CERT_OPTIONAL),
        (ClientCertificates.REQUIRED, ssl.CERT_REQUIRED),
    ],
)
def test_clients_are_asked_for_certificates_as_set(
    tmp_path: Path, asked: ClientCertificates, mode: int
) -> None:
    path = written(tmp_path)
    tls = ServerTls(certificate=path, client_authority=path, client_certificates=asked)
    assert tls.context().verify_mode == mode


def test_old_versions_of_tls_are_rejected(tmp_path: Path) -> None:
    context = ServerTls(certificate=written(tmp_path)).context()
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_a_certificate_without_a_key_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(path))
    with pytest.raises(InvalidTls, match=r"ca\.pem"):
        ServerTls(certificate=path).context()


def test_asking_for_certificates_needs_an_authority(tmp_path: Path) -> None:
    tls = ServerTls(certificate=written(tmp_path), client_certificates=ClientCertificates.REQUIRED)
    with pytest.raises(InvalidTls, match="authority"):
        tls.context()
