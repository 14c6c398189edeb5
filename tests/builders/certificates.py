"""Certificates for tests: an authority, and certificates of any owner that it signs."""

import datetime as dt
import ipaddress
from collections.abc import Iterable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

LOCAL = ("localhost", "127.0.0.1")
_DAY = dt.timedelta(days=1)


class Owned:
    """A certificate with its private key."""

    def __init__(
        self,
        certificate: x509.Certificate,
        key: ec.EllipticCurvePrivateKey,
        authority: x509.Certificate,
    ) -> None:
        self.certificate = certificate
        self.key = key
        self.authority = authority

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def key_pem(self, password: str | None = None) -> str:
        encryption = NoEncryption() if password is None else BestAvailableEncryption(_raw(password))
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()

    def write(self, path: Path) -> Path:
        """Write key and certificate into one PEM file, as a keystore of the type PEM."""
        path.write_text(self.key_pem() + self.certificate_pem)
        return path

    def write_pkcs12(self, path: Path, password: str) -> Path:
        encryption = BestAvailableEncryption(_raw(password))
        path.write_bytes(
            pkcs12.serialize_key_and_certificates(
                b"own", self.key, self.certificate, [self.authority], encryption
            )
        )
        return path


class Authority:
    """Signs certificates, and revokes them."""

    def __init__(self, name: str = "tests") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name([("CN", name)])
        now = dt.datetime.now(dt.UTC)
        self.certificate = (
            x509.CertificateBuilder()
            .subject_name(self._name)
            .issuer_name(self._name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + 30 * _DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_usage(), critical=True)
            .add_extension(self._key_id, critical=False)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def _key_id(self) -> x509.SubjectKeyIdentifier:
        return x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def write(self, path: Path) -> Path:
        path.write_text(self.pem)
        return path

    def issue(
        self,
        subject: str | Iterable[tuple[str, str]] = "localhost",
        hosts: Iterable[str] = LOCAL,
        *,
        expired: bool = False,
    ) -> Owned:
        """Issue a certificate, by default for this machine."""
        key = ec.generate_private_key(ec.SECP256R1())
        parts = [("CN", subject)] if isinstance(subject, str) else list(subject)
        now = dt.datetime.now(dt.UTC)
        end = now - dt.timedelta(hours=1) if expired else now + 10 * _DAY
        builder = (
            x509.CertificateBuilder()
            .subject_name(_name(parts))
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 2 * _DAY)
            .not_valid_after(end)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(self._key_id),
                critical=False,
            )
        )
        if names := [_host(host) for host in hosts]:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return Owned(builder.sign(self._key, hashes.SHA256()), key, self.certificate)

    def revoked(self, *owners: Owned) -> str:
        """Return a revocation list in PEM form."""
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self._name)
            .last_update(now - _DAY)
            .next_update(now + _DAY)
        )
        for owner in owners:
            builder = builder.add_revoked_certificate(
                x509.RevokedCertificateBuilder()
                .serial_number(owner.certificate.serial_number)
                .revocation_date(now - _DAY)
                .build()
            )
        return builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


def _usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )


_OIDS = {
    "CN": NameOID.COMMON_NAME,
    "O": NameOID.ORGANIZATION_NAME,
    "OU": NameOID.ORGANIZATIONAL_UNIT_NAME,
    "C": NameOID.COUNTRY_NAME,
}


def _name(parts: Iterable[tuple[str, str]]) -> x509.Name:
    return x509.Name([x509.NameAttribute(_OIDS[kind], value) for kind, value in parts])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _raw(password: str) -> bytes:
    return password.encode()
