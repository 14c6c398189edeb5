"""Keys and certificates of PKCS#12 stores, through `cryptography` of the extra `security`."""

from typing import TYPE_CHECKING

from headrace.errors import InvalidTls

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates


def keys_of(path: str, content: bytes, password: str) -> bytes:
    """Return the private key and its certificate chain as PEM."""
    store = _opened(path, content, password)
    if store.key is None or store.cert is None:
        raise InvalidTls(f"ssl.keystore.location: {path} has no private key with a certificate")
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain = [store.cert, *store.additional_certs]
    return b"".join((key, *(one.certificate.public_bytes(Encoding.PEM) for one in chain)))


def certificates_of(path: str, content: bytes, password: str | None) -> bytes:
    """Return all certificates as PEM."""
    from cryptography.hazmat.primitives.serialization import Encoding

    store = _opened(path, content, password)
    found = [one for one in (store.cert, *store.additional_certs) if one is not None]
    if not found:
        raise InvalidTls(f"ssl.truststore.location: {path} has no certificates")
    return b"".join(one.certificate.public_bytes(Encoding.PEM) for one in found)


def _opened(path: str, content: bytes, password: str | None) -> "PKCS12KeyAndCertificates":
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ModuleNotFoundError as error:
        raise InvalidTls(
            f"{path} is a PKCS#12 store, which needs another package: pip install "
            "headrace[security], or use a PEM file (openssl pkcs12 writes one)"
        ) from error
    try:
        return load_pkcs12(content, None if password is None else password.encode())
    except ValueError as error:
        raise InvalidTls(
            f"{path} cannot be opened: the password is wrong or the store is damaged"
        ) from error
