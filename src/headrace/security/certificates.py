"""Certificates of TLS: an authority of one's own, certificates by it, and their facts.

Needs the library `cryptography`, the extra `security`. Neither a broker nor a client imports this
module: both read PEM files by OpenSSL.
"""

import datetime as dt
import ipaddress
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from headrace.errors import HeadraceError

_EARLY = dt.timedelta(hours=1)
"""Certificates are valid this long before their creation, for machines whose clock is behind."""
_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


class InvalidCertificate(HeadraceError):
    """The bytes are not a certificate, or not a key that belongs to it."""


class Issued(msgspec.Struct, frozen=True):
    """A certificate and its private key, both in PEM."""

    certificate: str
    key: str

    @property
    def bundle(self) -> str:
        """Key and certificate in one file, as `ssl.keystore.type=PEM` reads it."""
        return self.key + self.certificate

    def __repr__(self) -> str:
        return "Issued(...)"


class CertificateFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a certificate."""

    subject: str
    issuer: str
    names: tuple[str, ...]
    not_before: dt.datetime
    not_after: dt.datetime
    is_authority: bool
    is_self_signed: bool
    key: str
    serial_number: str
    fingerprint: str

    def days_left(self, now: dt.datetime) -> int:
        """Return the days until the certificate expires; negative if it has."""
        return (self.not_after - now).days

    def is_valid(self, now: dt.datetime) -> bool:
        return self.not_before <= now <= self.not_after


def make_authority(name: str, now: dt.datetime, days: int) -> Issued:
    """Make a certificate authority that signs certificates for hosts and users."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name)
    certificate = (
        _builder(subject, subject, key.public_key(), now, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage("key_cert_sign", "crl_sign"), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _issued(certificate, key)


def make_certificate(
    authority: Issued,
    name: str,
    hosts: Sequence[str],
    now: dt.datetime,
    days: int,
) -> Issued:
    """Make a certificate signed by an authority, for the hosts of a node or for a user.

    A node connects to others by the same certificate, so it serves both purposes.
    """
    signer, signing_key = _read_issued(authority)
    key = ec.generate_private_key(ec.SECP256R1())
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = _builder(_name(name), signer.subject, key.public_key(), now, days)
    if hosts:
        purposes.insert(0, ExtendedKeyUsageOID.SERVER_AUTH)
        names = x509.SubjectAlternativeName([_host(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    authority_id = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(
        signer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    )
    certificate = (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage("digital_signature"), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(authority_id, critical=False)
        .sign(signing_key, hashes.SHA256())
    )
    return _issued(certificate, key)


def read_certificates(content: bytes) -> list[CertificateFacts]:
    """Return the facts of all certificates in PEM, or of one in DER."""
    try:
        if b"-----BEGIN" in content:
            found = x509.load_pem_x509_certificates(content)
        else:
            found = [x509.load_der_x509_certificate(content)]
    except ValueError as error:
        raise InvalidCertificate(f"no certificate in PEM or DER: {error}") from error
    return [_facts(one) for one in found]


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: dt.datetime,
    days: int,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLY)
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _name(common_name: str) -> x509.Name:
    try:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    except ValueError as error:
        raise InvalidCertificate(
            f"{common_name!r} cannot be a certificate's name: {error}"
        ) from error


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        pass
    try:
        return x509.DNSName(text)
    except ValueError as error:
        raise InvalidCertificate(f"{text!r} is not the name of a host: {error}") from error


def _usage(*used: str) -> x509.KeyUsage:
    return x509.KeyUsage(**{name: name in used for name in _USAGES})


def _issued(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Issued:
    return Issued(
        certificate.public_bytes(serialization.Encoding.PEM).decode(),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode(),
    )


def _read_issued(issued: Issued) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Read an authority that `make_authority` has made."""
    try:
        certificate = x509.load_pem_x509_certificate(issued.certificate.encode())
        key = serialization.load_pem_private_key(issued.key.encode(), None)
    except (ValueError, TypeError) as error:
        raise InvalidCertificate(f"the authority is damaged: {error}") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InvalidCertificate("the authority's key is not an elliptic curve key")
    if key.public_key() != certificate.public_key():
        raise InvalidCertificate("the authority's key belongs to another certificate")
    return certificate, key


def _facts(certificate: x509.Certificate) -> CertificateFacts:
    return CertificateFacts(
        subject=certificate.subject.rfc4514_string(),
        issuer=certificate.issuer.rfc4514_string(),
        names=tuple(_alternative_names(certificate)),
        not_before=certificate.not_valid_before_utc,
        not_after=certificate.not_valid_after_utc,
        is_authority=_is_authority(certificate),
        is_self_signed=_is_self_signed(certificate),
        key=_key_text(certificate.public_key()),
        serial_number=f"{certificate.serial_number:x}",
        fingerprint=certificate.fingerprint(hashes.SHA256()).hex(":").upper(),
    )


def _alternative_names(certificate: x509.Certificate) -> Iterator[str]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return
    names: Iterable[x509.GeneralName] = extension.value
    for name in names:
        yield str(name.value)


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        found = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    except x509.ExtensionNotFound:
        return False
    return found.value.ca


def _is_self_signed(certificate: x509.Certificate) -> bool:
    return certificate.issuer == certificate.subject


def _key_text(key: CertificatePublicKeyTypes) -> str:
    match key:
        case rsa.RSAPublicKey():
            return f"RSA {key.key_size}"
        case ec.EllipticCurvePublicKey():
            return f"EC {key.curve.name}"
        case ed25519.Ed25519PublicKey():
            return "Ed25519"
        case ed448.Ed448PublicKey():
            return "Ed448"
        case _:
            return type(key).__name__
