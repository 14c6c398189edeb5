"""Users with passwords from a file, for HTTP's Basic authentication.

Each line is `name:hash`; the hash is made by scrypt with a salt of its own, so a stolen file does
not tell the passwords. `python -m headrace.http.users NAME` asks for a password, or reads one that
is piped in, and prints the line. A hash takes some fifty milliseconds of work on purpose, so a
password that was found right is remembered by a keyed digest that lives in this process only.
"""

import argparse
import base64
import binascii
import getpass
import hashlib
import hmac
import os
import secrets
import sys
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from headrace.errors import HeadraceError

_SCHEME = "scrypt"
_COST = 1 << 14
_BLOCK = 8
_PARALLEL = 1
_SALT_BYTES = 16
_HASH_BYTES = 32
_COST_MAX = 1 << 17
_FILE_BYTES_MAX = 1 << 20
_REMEMBERED_MAX = 1_000
_PASSWORD_BYTES_MAX = 1024
_OPEN_TO_OTHERS = 0o077


class InvalidUserFile(HeadraceError):
    """A file of users that cannot be read, or a line of it that is none."""


@dataclass(frozen=True, slots=True)
class PasswordHash:
    """What is kept of a password."""

    cost: int
    salt: bytes
    digest: bytes

    @classmethod
    def of(cls, password: str) -> Self:
        salt = secrets.token_bytes(_SALT_BYTES)
        return cls(_COST, salt, _scrypt(password, salt, _COST))

    @classmethod
    def parse(cls, text: str) -> Self:
        """The form that `str` gives; raises `ValueError` for any other."""
        scheme, cost, salt, digest = text.split("$")
        if scheme != _SCHEME:
            raise ValueError(f"it is made by {scheme!r}, not {_SCHEME}")
        number = int(cost)
        if not 2 <= number <= _COST_MAX or number & (number - 1):
            raise ValueError(f"its cost is {cost}")
        found = cls(number, _decoded(salt), _decoded(digest))
        if len(found.digest) != _HASH_BYTES:
            raise ValueError(f"it has {len(found.digest)} bytes, not {_HASH_BYTES}")
        return found

    def fits(self, password: str) -> bool:
        return hmac.compare_digest(_scrypt(password, self.salt, self.cost), self.digest)

    def __str__(self) -> str:
        parts = (_SCHEME, str(self.cost), _encoded(self.salt), _encoded(self.digest))
        return "$".join(parts)


@dataclass(slots=True)
class UserFile:
    """The users of a file, and who of them was let in lately."""

    hashes: dict[str, PasswordHash]
    is_open_to_others: bool = False
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _remembered: OrderedDict[bytes, None] = field(default_factory=OrderedDict, repr=False)

    def remembers(self, name: str, password: str) -> bool:
        """Whether this password was found right before; costs next to nothing."""
        mark = self._mark(name, password)
        if mark not in self._remembered:
            return False
        self._remembered.move_to_end(mark)
        return True

    def accepts(self, name: str, password: str) -> bool:
        """Whether this is the user's password; takes as long for a name that nobody has.

        Changes nothing, so that it may run in a thread.
        """
        if len(password.encode()) > _PASSWORD_BYTES_MAX:
            return False
        known = self.hashes.get(name)
        return (known or _NOBODY).fits(password) and known is not None

    def remember(self, name: str, password: str) -> None:
        """Spare a password that was found right the work of the next time."""
        self._remembered[self._mark(name, password)] = None
        if len(self._remembered) > _REMEMBERED_MAX:
            self._remembered.popitem(last=False)

    def _mark(self, name: str, password: str) -> bytes:
        return hmac.digest(self._key, f"{len(name)}:{name}{password}".encode(), "sha256")


def read_users(path: Path) -> UserFile:
    """The users of a file, one per line; empty lines and those that start with # are skipped."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_FILE_BYTES_MAX + 1)
            mode = os.fstat(file.fileno()).st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidUserFile(f"the file of users {path} cannot be read: {error}") from error
    if len(text) > _FILE_BYTES_MAX:
        raise InvalidUserFile(
            f"the file of users {path} is longer than {_FILE_BYTES_MAX >> 10} KB; take users out"
        )
    hashes = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            name, hash = _parsed(line.strip(), path, number)
            hashes[name] = hash
    if not hashes:
        raise InvalidUserFile(f"the file of users {path} names nobody; {_ADVICE}")
    return UserFile(hashes, bool(mode & _OPEN_TO_OTHERS))


_ADVICE = "`python -m headrace.http.users NAME` prints a line for it"


def _parsed(line: str, path: Path, number: int) -> tuple[str, PasswordHash]:
    name, separator, text = line.partition(":")
    try:
        if not separator or not name:
            raise ValueError("it is not of the form name:hash")
        return name, PasswordHash.parse(text)
    except ValueError as error:
        raise InvalidUserFile(f"{path}, line {number}: {error}; {_ADVICE}") from None


def _scrypt(password: str, salt: bytes, cost: int) -> bytes:
    return hashlib.scrypt(
        password.encode(),
        salt=salt,
        n=cost,
        r=_BLOCK,
        p=_PARALLEL,
        maxmem=256 * _BLOCK * cost,
        dklen=_HASH_BYTES,
    )


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"it is not base64: {error}") from None


_NOBODY = PasswordHash(_COST, bytes(_SALT_BYTES), bytes(_HASH_BYTES))
"""What the password of an unknown user is compared with."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the line of a user; the password is asked for, so that no history keeps it."""
    parser = argparse.ArgumentParser(
        prog="python -m headrace.http.users",
        description="Print the line of a user for a file of users. The password is asked for, or"
        " read from the first line of the input where that is no terminal.",
    )
    parser.add_argument("name", metavar="NAME", help="the user's name, without colons")
    name: str = parser.parse_args(arguments).name
    if not name.strip() or ":" in name or name.startswith("#") or not name.isprintable():
        parser.error(f"{name!r} is no name of a user: give one without colons, not begun by #")
    password = _asked_password()
    if not password:
        parser.error("there is no password: type one at a terminal, or pipe it in as a line")
    if len(password.encode()) > _PASSWORD_BYTES_MAX:
        parser.error(f"the password is longer than {_PASSWORD_BYTES_MAX} bytes; no login takes it")
    print(f"{name}:{PasswordHash.of(password)}")


def _asked_password() -> str:
    if sys.stdin is None:  # A process may be started without any input.
        return ""
    if sys.stdin.isatty():
        return getpass.getpass()
    return sys.stdin.readline(_PASSWORD_BYTES_MAX + 2).rstrip("\r\n")


if __name__ == "__main__":
    main()
