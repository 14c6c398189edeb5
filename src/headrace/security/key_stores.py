"""Keys and certificates of a listener, read from PEM, PKCS#12 and JKS stores into PEM."""

from pathlib import Path

import msgspec

from headrace.errors import InvalidTls
from headrace.settings.listener_security import JKS, PEM, TlsSettings

_PEM_START = b"-----BEGIN "
_KEY_MARK = b"PRIVATE KEY-----"
_JKS_MAGIC = b"\xfe\xed\xfe\xed"
_PKCS12_START = b"\x30"


class TlsMaterial(msgspec.Struct, frozen=True):
    """The content of a listener's stores; everything is PEM."""

    keys: bytes | None = None
    """The private key, and the certificate chain from the own certificate on."""
    key_password: str | None = None
    trusted: bytes | None = None
    """The trusted authorities; None for those of the system."""
    revoked: bytes | None = None

    def __repr__(self) -> str:
        return "TlsMaterial()"


def read_material(tls: TlsSettings) -> TlsMaterial:
    """Read the stores; errors name the property and the file."""
    keys, key_password = _keys(tls)
    revoked = None
    if tls.crl_location is not None:
        revoked = _content("headrace.ssl.crl.location", tls.crl_location)
        if b"-----BEGIN X509 CRL-----" not in revoked:
            raise InvalidTls(
                f"headrace.ssl.crl.location: {tls.crl_location} has no revocation list in PEM form"
            )
    return TlsMaterial(keys, key_password, _trusted(tls), revoked)


def _keys(tls: TlsSettings) -> tuple[bytes | None, str | None]:
    """Return key and chain as PEM, with the password of the key if it is still encrypted."""
    if tls.keystore_key is not None:
        chain = tls.keystore_certificate_chain or ""
        return f"{tls.keystore_key}\n{chain}\n".encode(), tls.key_password
    if tls.keystore_location is None:
        return None, None
    name, path = "ssl.keystore.location", tls.keystore_location
    content = _content(name, path)
    if tls.keystore_type == PEM:
        if _KEY_MARK not in content:
            raise InvalidTls(f"{name}: {path} has no private key in PEM form")
        return content, tls.key_password
    _check_form(name, path, content, tls.keystore_type)
    password = tls.keystore_password or ""
    if content.startswith(_JKS_MAGIC):
        from headrace.security.java_key_store import read_keys

        return read_keys(path, content, password, tls.key_password or password), None
    from headrace.security.pkcs12 import keys_of

    return keys_of(path, content, password), None


def _trusted(tls: TlsSettings) -> bytes | None:
    if tls.truststore_certificates is not None:
        return tls.truststore_certificates.encode()
    if tls.truststore_location is None:
        return None
    name, path = "ssl.truststore.location", tls.truststore_location
    content = _content(name, path)
    if tls.truststore_type == PEM:
        return content
    _check_form(name, path, content, tls.truststore_type)
    if content.startswith(_JKS_MAGIC):
        from headrace.security.java_key_store import read_certificates

        return read_certificates(path, content, tls.truststore_password)
    from headrace.security.pkcs12 import certificates_of

    return certificates_of(path, content, tls.truststore_password)


def _content(name: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidTls(f"{name}: {path} cannot be read: {error.strerror}") from error


def _check_form(name: str, path: str, content: bytes, kind: str) -> None:
    """Raise unless the content is a binary store; a store of the type JKS may be PKCS#12."""
    if content.startswith(_PEM_START):
        config = name.replace(".location", ".type")
        raise InvalidTls(f"{name}: {path} is a PEM file; set {config}=PEM")
    is_jks = content.startswith(_JKS_MAGIC)
    if not is_jks and not content.startswith(_PKCS12_START):
        raise InvalidTls(f"{name}: {path} is not a {kind} store")
    if is_jks and kind != JKS:
        config = name.replace(".location", ".type")
        raise InvalidTls(f"{name}: {path} is a JKS store; set {config}=JKS")
