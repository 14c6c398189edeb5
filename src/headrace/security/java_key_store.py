"""Keys and certificates of JKS stores, the format of Java before version 9.

A store is a list of entries and a SHA-1 over the password, a fixed text and the entries. A key is
encrypted by a stream of SHA-1 sums over the password, Sun's own algorithm for this format.
"""

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Iterator
from typing import NamedTuple

from headrace.errors import InvalidTls

_KEY, _CERTIFICATE = 1, 2
_SUM_BYTES = _SALT_BYTES = 20
_FIXED_TEXT = b"Mighty Aphrodite"  # A constant of the format.
_SUN_KEY_PROTECTOR = bytes.fromhex("300e060a2b060104012a02110101050004")
_CHAIN_MAX = 1000


class _Entry(NamedTuple):
    kind: int
    protected_key: bytes
    certificates: list[bytes]


def read_keys(path: str, content: bytes, password: str, key_password: str) -> bytes:
    """Return the first private key and its certificate chain as PEM."""
    for entry in _entries(path, content, password):
        if entry.kind == _KEY:
            key = _unprotected(path, entry.protected_key, key_password)
            chain = [_pem("CERTIFICATE", one) for one in entry.certificates]
            return b"".join((_pem("PRIVATE KEY", key), *chain))
    raise InvalidTls(f"ssl.keystore.location: {path} has no private key")


def read_certificates(path: str, content: bytes, password: str | None) -> bytes:
    """Return the trusted certificates as PEM; without a password the sum is not checked."""
    entries = _entries(path, content, password)
    found = [entry.certificates[0] for entry in entries if entry.kind == _CERTIFICATE]
    if not found:
        raise InvalidTls(f"ssl.truststore.location: {path} has no certificates")
    return b"".join(_pem("CERTIFICATE", one) for one in found)


def _entries(path: str, content: bytes, password: str | None) -> list[_Entry]:
    body, checksum = content[:-_SUM_BYTES], content[-_SUM_BYTES:]
    if password is not None:
        # The format prescribes SHA-1; the sum only detects damage and a wrong password.
        wanted = hashlib.sha1(password.encode("utf-16-be") + _FIXED_TEXT + body)
        if not hmac.compare_digest(wanted.digest(), checksum):
            raise InvalidTls(
                f"{path} cannot be opened: the password is wrong or the store is damaged"
            )
    try:
        return list(_read_entries(body))
    except (IndexError, ValueError) as error:
        raise InvalidTls(f"{path} is not a valid JKS store: {error}") from error


def _read_entries(body: bytes) -> Iterator[_Entry]:
    reader = _Reader(body, position=4)
    version, count = reader.number(4), reader.number(4)
    for _ in range(count):
        kind = reader.number(4)
        reader.sized(2)  # The alias.
        reader.number(8)  # The time of its creation.
        key = reader.sized(4) if kind == _KEY else b""
        chain_size = reader.number(4) if kind == _KEY else 1
        if kind not in (_KEY, _CERTIFICATE) or chain_size > _CHAIN_MAX:
            raise ValueError("an entry is of an unknown kind")
        certificates = []
        for _ in range(chain_size):
            if version == 2:
                reader.sized(2)  # The type of the certificate.
            certificates.append(reader.sized(4))
        yield _Entry(kind, key, certificates)


class _Reader:
    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position

    def number(self, size: int) -> int:
        return int.from_bytes(self._take(size))

    def sized(self, size_bytes: int) -> bytes:
        return self._take(self.number(size_bytes))

    def _take(self, size: int) -> bytes:
        start, self._position = self._position, self._position + size
        if self._position > len(self._data):
            raise ValueError("it ends early")
        return self._data[start : self._position]


def _unprotected(path: str, protected: bytes, password: str) -> bytes:
    """Decrypt a key; its last 20 bytes prove that the password is right."""
    start = protected.find(_SUN_KEY_PROTECTOR)
    if start < 0:
        raise InvalidTls(f"{path} protects its key by an unknown algorithm")
    # The algorithm is followed by an octet string: tag, size, then salt, key and sum.
    position = start + len(_SUN_KEY_PROTECTOR)
    if protected[position] & 0x80:
        position += protected[position] & 0x7F
    data = protected[position + 1 :]
    salt, encrypted = data[:_SALT_BYTES], data[_SALT_BYTES:-_SUM_BYTES]
    secret = password.encode("utf-16-be")
    stream, block = b"", salt
    while len(stream) < len(encrypted):
        block = hashlib.sha1(secret + block).digest()
        stream += block
    key = bytes(a ^ b for a, b in zip(encrypted, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + key).digest(), data[-_SUM_BYTES:]):
        raise InvalidTls(f"the key in {path} cannot be decrypted: ssl.key.password is wrong")
    return key


def _pem(label: str, der: bytes) -> bytes:
    text = b64encode(der)
    lines = [text[start : start + 64] for start in range(0, len(text), 64)]
    mark = label.encode()
    return b"\n".join((b"-----BEGIN " + mark + b"-----", *lines, b"-----END " + mark + b"-----\n"))
