"""Names and validity of an X.509 certificate, read from its DER form.

OpenSSL has verified a certificate before it is read here. Python's own reading loses the types of
the values of a name, which Java's form of the name needs.
"""

import re
from base64 import b64decode
from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from headrace.errors import HeadraceError

_UTC_TIME = 0x17
_VERSION, _EXTENSIONS = 0xA0, 0xA3
_ALTERNATIVE_NAMES = "2.5.29.17"
_STRING_TAGS = frozenset((0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E))
"""UTF8String, PrintableString, T61String, IA5String, GeneralString and BMPString."""

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_ESCAPED = frozenset(',=+<>#;"\\')
_PEM = re.compile(
    rb"-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----(.*?)-----END (?:TRUSTED |X509 )?CERTIFICATE",
    re.DOTALL,
)


class InvalidCertificate(HeadraceError):
    """Bytes that are not a certificate."""


class Certificate(msgspec.Struct, frozen=True):
    """The parts of a certificate that identify its owner."""

    subject: str
    """The distinguished name as Java's `X500Principal.getName()` prints it (RFC 2253)."""
    alternative_names: frozenset[bytes]
    expires_s: float


def read_certificate(der: bytes) -> Certificate:
    """Read a certificate; raise `InvalidCertificate` if it is malformed."""
    try:
        return _certificate(der)
    except (IndexError, ValueError) as error:
        raise InvalidCertificate(f"the certificate is malformed: {error}") from error


def certificates_in(pem: bytes) -> list[bytes]:
    """Return the certificates of a PEM text in DER form."""
    try:
        return [b64decode(match[1]) for match in _PEM.finditer(pem)]
    except ValueError as error:
        raise InvalidCertificate(f"the certificate is not PEM: {error}") from error


def _certificate(der: bytes) -> Certificate:
    (_, outer), *_ = _elements(der)
    (_, body), *_ = _elements(outer)
    fields = list(_elements(body))
    first = 1 if fields[0][0] == _VERSION else 0
    # After the version: serial number, signature algorithm, issuer, validity, subject.
    _, (end_tag, end) = _elements(fields[first + 3][1])
    extensions = next((content for tag, content in fields if tag == _EXTENSIONS), None)
    return Certificate(
        distinguished_name(fields[first + 4][1]),
        frozenset() if extensions is None else _alternative_names(extensions),
        _time(end_tag, end),
    )


def distinguished_name(name: bytes) -> str:
    """Return the content of a DER name as text, most specific part first."""
    relatives = [content for _, content in _elements(name)]
    return ",".join(_relative_name(one) for one in reversed(relatives))


def _relative_name(relative: bytes) -> str:
    return "+".join(_attribute(content) for _, content in _elements(relative))


def _attribute(pair: bytes) -> str:
    (_, oid), (tag, value) = _elements(pair)
    name = _dotted(oid)
    keyword = _KEYWORDS.get(name)
    if keyword is None or tag not in _STRING_TAGS:
        encoded = pair[_end_of_first(pair) :]
        return f"{keyword or name}=#{encoded.hex()}"
    return f"{keyword}={_escaped(value.decode('utf-8', 'replace'))}"


def _escaped(value: str) -> str:
    """Escape a value as Java does, which is stricter than RFC 2253 demands."""
    text = "".join(
        f"\\{letter}" if letter in _ESCAPED else "\\00" if letter == "\0" else letter
        for letter in value
    )
    inner = text.strip(" \r")
    if inner == text:
        return text
    if not inner:
        return "".join(f"\\{letter}" for letter in text)
    start = text.index(inner)
    before, after = text[:start], text[start + len(inner) :]
    return "".join(
        (*(f"\\{letter}" for letter in before), inner, *(f"\\{letter}" for letter in after))
    )


def _alternative_names(extensions: bytes) -> frozenset[bytes]:
    (_, rows), *_ = _elements(extensions)
    for _, row in _elements(rows):
        parts = list(_elements(row))
        if _dotted(parts[0][1]) == _ALTERNATIVE_NAMES:
            (_, names), *_ = _elements(parts[-1][1])
            return frozenset(bytes((tag,)) + content for tag, content in _elements(names))
    return frozenset()


def _time(tag: int, content: bytes) -> float:
    text = content.decode("ascii")
    if tag == _UTC_TIME:  # Two digits of the year: 50 to 99 are of the last century.
        text = f"{'19' if text[:2] >= '50' else '20'}{text}"
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the tag and the content of each DER element."""
    position = 0
    while position < len(data):
        tag = data[position]
        start, end = _content(data, position)
        yield tag, data[start:end]
        position = end


def _end_of_first(data: bytes) -> int:
    return _content(data, 0)[1]


def _content(data: bytes, position: int) -> tuple[int, int]:
    """Return the bounds of the content of the element at a position."""
    size, start = data[position + 1], position + 2
    if size & 0x80:
        count = size & 0x7F
        size = int.from_bytes(data[start : start + count])
        start += count
    if start + size > len(data):
        raise ValueError("an element is longer than the bytes around it")
    return start, start + size


def _dotted(oid: bytes) -> str:
    """Return an object identifier in its dotted form."""
    numbers, number = [], 0
    for byte in oid:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(str(one) for one in (first, numbers[0] - 40 * first, *numbers[1:]))
