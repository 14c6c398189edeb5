"""The first users of a cluster, as the option --add-scram names them.

It is kafka-storage's form: `SCRAM-SHA-256=[name=ada,password=...]`. The credentials are written
with the first records of the log, so that somebody can log in to create further users.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping

from headrace.errors import InvalidConfig
from headrace.protocol.schemas.records.metadata import UserScramCredentialRecord
from headrace.security.sasl.scram import ITERATIONS_MIN, Mechanism
from headrace.security.scram_credentials import (
    MECHANISM_IDS,
    STORED_ITERATIONS_MAX,
    ScramCredential,
    credential_of,
    credential_of_salted,
    new_salt,
)

_KEYS = ("name", "password", "salt", "iterations", "saltedpassword")
_FORM = "write it as SCRAM-SHA-256=[name=NAME,password=PASSWORD]"


def parse_first_user(text: str) -> UserScramCredentialRecord:
    """Return the record of a user; no error shows a password."""
    name, separator, content = text.strip().partition("=")
    if not separator:
        raise InvalidConfig(f"a first user has no mechanism; {_FORM}")
    if name not in tuple(Mechanism):
        raise InvalidConfig(f"{name!r} is not a SCRAM mechanism; use {', '.join(Mechanism)}")
    if not (content.startswith("[") and content.endswith("]")):
        raise InvalidConfig(f"the content of a first user must be in brackets; {_FORM}")
    mechanism = Mechanism(name)
    given = dict(_parts(content[1:-1]))
    unknown = [key for key in given if key not in _KEYS]
    if unknown:
        raise InvalidConfig(
            f"{', '.join(map(repr, unknown))} is not part of a first user; use {', '.join(_KEYS)}"
        )
    if not given.get("name"):
        raise InvalidConfig(f"a first user has no name; {_FORM}")
    return user_record(given["name"], mechanism, _credential(mechanism, given))


def user_record(
    name: str, mechanism: Mechanism, credential: ScramCredential
) -> UserScramCredentialRecord:
    """Return the record of a user's credential."""
    return UserScramCredentialRecord(
        name=name,
        mechanism=MECHANISM_IDS[mechanism],
        salt=credential.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=credential.iterations,
    )


def _parts(content: str) -> Iterator[tuple[str, str]]:
    for number, part in enumerate(content.split(","), 1):
        key, separator, value = part.partition("=")
        if not separator:
            raise InvalidConfig(f"part {number} of a first user has no equals sign; {_FORM}")
        is_quoted = len(value) >= 2 and value.startswith('"') and value.endswith('"')
        yield key, value[1:-1] if is_quoted else value


def _credential(mechanism: Mechanism, given: Mapping[str, str]) -> ScramCredential:
    iterations = _iterations(given)
    salt = _base64(given, "salt") if "salt" in given else new_salt()
    if ("password" in given) == ("saltedpassword" in given):
        raise InvalidConfig("a first user needs one of password and saltedpassword")
    if "password" in given:
        return credential_of(mechanism, given["password"], salt, iterations)
    if "salt" not in given:
        raise InvalidConfig("the saltedpassword of a first user needs its salt")
    salted = _base64(given, "saltedpassword")
    if not salted:
        raise InvalidConfig("the saltedpassword of a first user must not be empty")
    return credential_of_salted(mechanism, salted, salt, iterations)


def _iterations(given: Mapping[str, str]) -> int:
    text = given.get("iterations", str(ITERATIONS_MIN))
    is_number = text.isascii() and text.isdecimal() and len(text) < 10
    if not is_number or not ITERATIONS_MIN <= int(text) <= STORED_ITERATIONS_MAX:
        raise InvalidConfig(
            f"the iterations of a first user must be between {ITERATIONS_MIN} and "
            f"{STORED_ITERATIONS_MAX}, not {text!r}"
        )
    return int(text)


def _base64(given: Mapping[str, str], key: str) -> bytes:
    """Decode a value; as in Java, its padding may be missing."""
    text = given[key]
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidConfig(f"the {key} of a first user is not base64") from None
