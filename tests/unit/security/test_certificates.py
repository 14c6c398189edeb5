"""Certificates by an authority of one's own, as OpenSSL sees them."""

import datetime as dt
import ssl
from pathlib import Path

import pytest

from headrace.security.certificates import (
    InvalidCertificate,
    Issued,
    make_authority,
    make_certificate,
    read_certificates,
)

NOW = dt.datetime.now(dt.UTC).replace(microsecond=0)


@pytest.fixture(scope="module")
def authority() -> Issued:
    return make_authority("tests", NOW, 10)


def hands_shaken(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> ssl.SSLObject:
    """Return the client's side of a handshake in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server.wrap_bio(to_server, to_client, server_side=True)
    theirs = client.wrap_bio(to_client, to_server, server_hostname=host)
    pending = {ours, theirs}
    while pending:
        for one in (theirs, ours):
            try:
                one.do_handshake()
                pending.discard(one)
            except ssl.SSLWantReadError:
                continue
    return theirs


def server_context(folder: Path, issued: Issued) -> ssl.SSLContext:
    bundle = folder / "bundle.pem"
    bundle.write_text(issued.bundle)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(bundle)
    return context


def test_clients_trust_hosts_of_the_authority_by_name_and_address(
    authority: Issued, tmp_path: Path
) -> None:
    """SEC-2: the certificates serve TLS."""
    issued = make_certificate(authority, "node", ("kafka.lan", "127.0.0.1", "::1"), NOW, 5)
    server = server_context(tmp_path, issued)
    client = ssl.create_default_context(cadata=authority.certificate)
    for host in ("kafka.lan", "127.0.0.1", "::1"):
        assert hands_shaken(server, client, host).version() == "TLSv1.3"
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        hands_shaken(server, client, "other.lan")


def test_a_user_of_the_authority_is_trusted_by_servers(authority: Issued, tmp_path: Path) -> None:
    """SEC-3: the certificates identify clients."""
    server = server_context(tmp_path, make_certificate(authority, "node", ("n",), NOW, 5))
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_verify_locations(cadata=authority.certificate)
    client = ssl.create_default_context(cadata=authority.certificate)
    client.check_hostname = False
    bundle = tmp_path / "ada.pem"
    bundle.write_text(make_certificate(authority, "ada", (), NOW, 5).bundle)
    client.load_cert_chain(bundle)
    assert hands_shaken(server, client, "n").version() == "TLSv1.3"


def test_the_facts_of_a_certificate_are_read_from_pem_and_der(authority: Issued) -> None:
    issued = make_certificate(authority, "ada", ("a.lan", "10.0.0.7"), NOW, 5)
    (facts,) = read_certificates(issued.certificate.encode())
    assert (facts.subject, facts.issuer, facts.key) == ("CN=ada", "CN=tests", "EC secp256r1")
    assert facts.names == ("a.lan", "10.0.0.7")
    assert (facts.is_authority, facts.is_self_signed) == (False, False)
    assert facts.not_after == NOW + dt.timedelta(days=5)
    assert read_certificates(ssl.PEM_cert_to_DER_cert(issued.certificate)) == [facts]
    (root,) = read_certificates(authority.certificate.encode())
    assert (root.is_authority, root.is_self_signed) == (True, True)


def test_a_certificate_is_valid_until_its_last_second(authority: Issued) -> None:
    (facts,) = read_certificates(make_certificate(authority, "a", (), NOW, 5).certificate.encode())
    assert facts.days_left(NOW) == 5
    assert facts.is_valid(facts.not_after)
    assert not facts.is_valid(facts.not_after + dt.timedelta(seconds=1))


@pytest.mark.parametrize("content", [b"", b"hello", b"-----BEGIN CERTIFICATE-----\nAAAA\n"])
def test_bytes_that_are_no_certificate_are_rejected(content: bytes) -> None:
    with pytest.raises(InvalidCertificate):
        read_certificates(content)


def test_a_key_of_another_authority_is_rejected(authority: Issued) -> None:
    other = make_authority("other", NOW, 5)
    with pytest.raises(InvalidCertificate, match="belongs to another"):
        make_certificate(Issued(authority.certificate, other.key), "ada", (), NOW, 5)


def test_invalid_names_are_rejected(authority: Issued) -> None:
    with pytest.raises(InvalidCertificate, match="cannot be a certificate's name"):
        make_certificate(authority, "n" * 65, (), NOW, 5)
    with pytest.raises(InvalidCertificate, match="is not the name of a host"):
        make_certificate(authority, "a", ("\u00e4.lan",), NOW, 5)


def test_keys_are_not_shown(authority: Issued) -> None:
    assert "PRIVATE" not in repr(authority)
