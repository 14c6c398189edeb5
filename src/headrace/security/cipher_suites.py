"""Names of TLS cipher suites: the IANA's, which Kafka's settings use, and OpenSSL's."""

import re
from collections.abc import Iterable
from typing import NamedTuple

_TLS_1_3 = re.compile(r"TLS_(AES|CHACHA20)_[A-Z0-9_]+")
_IANA = re.compile(r"TLS_(\w+)_WITH_(\w+)")


class Suites(NamedTuple):
    """Suites by the version of TLS that has them."""

    tls_1_2: tuple[str, ...]
    """By OpenSSL's names."""
    tls_1_3: tuple[str, ...]


def by_version(names: Iterable[str]) -> Suites:
    """Sort suites by version, and convert the names of the IANA."""
    newer, older = [], []
    for name in names:
        if _TLS_1_3.fullmatch(name):
            newer.append(name)
        else:
            older.append(openssl_name(name))
    return Suites(tuple(older), tuple(newer))


def openssl_name(name: str) -> str:
    """Return OpenSSL's name of a suite; names of any other form stay as they are."""
    match = _IANA.fullmatch(name)
    if match is None:
        return name
    exchange, cipher = match[1].replace("_", "-"), match[2]
    cipher = re.sub(r"_POLY1305_SHA256$", "_POLY1305", cipher)
    cipher = re.sub(r"^(AES|CAMELLIA)_(128|256)", r"\1\2", cipher)
    cipher = re.sub(r"_CBC_", "_", cipher).replace("_", "-")
    return cipher if exchange == "RSA" else f"{exchange}-{cipher}"
