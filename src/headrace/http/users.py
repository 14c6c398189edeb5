"""Users with passwords from a file, for HTTP's Basic authentication.

Each line is `name:hash`, where the hash is scrypt's with a salt of its own, so a stolen file does
not reveal passwords. `python -m headrace.http.users NAME` prompts for a password, or reads it from
a pipe, and prints the line. A hash takes some fifty milliseconds on purpose, so an accepted
password is remembered by a keyed digest, in this process only.
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
    """A user file that is unreadable or has an invalid line."""


@dataclass(frozen=True, slots=True)
class PasswordHash:
    cost: int
    salt: bytes
    digest: bytes

    @classmethod
    def of(cls, password: str) -> Self:
        salt = secrets.token_bytes(_SALT_BYTES)
        return cls(_COST, salt, _scrypt(password, salt, _COST))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the result of `str`; raise `ValueError` for any other text."""
        scheme, cost, salt, digest = text.split("$")
        if scheme != _SCHEME:
            raise ValueError(f"the hash is of {scheme!r}, not {_SCHEME}")
        number = int(cost)
        if not 2 <= number <= _COST_MAX or number & (number - 1):
            raise ValueError(f"invalid cost {cost}")
        found = cls(number, _decoded(salt), _decoded(digest))
        if len(found.digest) != _HASH_BYTES:
            raise ValueError(f"the hash has {len(found.digest)} bytes, not {_HASH_BYTES}")
        return found

    def fits(self, password: str) -> bool:
        return hmac.compare_digest(_scrypt(password, self.salt, self.cost), self.digest)

    def __str__(self) -> str:
        parts = (_SCHEME, str(self.cost), _encoded(self.salt), _encoded(self.digest))
        return "$".join(parts)


@dataclass(slots=True)
class UserFile:
    """The users of a file, and recently accepted passwords."""

    hashes: dict[str, PasswordHash]
    is_open_to_others: bool = False
    path: Path | None = None
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _remembered: OrderedDict[bytes, None] = field(default_factory=OrderedDict, repr=False)

    def remembers(self, name: str, password: str) -> bool:
        """Check for a recently accepted password; cheap."""
        mark = self._mark(name, password)
        if mark not in self._remembered:
            return False
        self._remembered.move_to_end(mark)
        return True

    def accepts(self, name: str, password: str) -> bool:
        """Verify a password, in the same time for unknown users.

        Changes nothing, so that it may run in a thread.
        """
        if len(password.encode()) > _PASSWORD_BYTES_MAX:
            return False
        known = self.hashes.get(name)
        return (known or _UNKNOWN_USER).fits(password) and known is not None

    def remember(self, name: str, password: str) -> None:
        """Remember an accepted password, so that the next check is cheap."""
        self._remembered[self._mark(name, password)] = None
        if len(self._remembered) > _REMEMBERED_MAX:
            self._remembered.popitem(last=False)

    def _mark(self, name: str, password: str) -> bytes:
        return hmac.digest(self._key, f"{len(name)}:{name}{password}".encode(), "sha256")


def secret_lines(
    path: Path, kind: str, bytes_max: int, error: type[HeadraceError]
) -> tuple[list[tuple[int, str]], bool]:
    """Read the lines of a file with their numbers, and whether other users may read the file.

    Empty lines and those that start with # are skipped.
    """
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(bytes_max + 1)
            mode = os.fstat(file.fileno()).st_mode
    except (OSError, UnicodeDecodeError) as cause:
        raise error(f"the {kind} {path} cannot be read: {cause}") from cause
    if len(text) > bytes_max:
        raise error(f"the {kind} {path} is longer than {bytes_max >> 10} KB; remove old lines")
    lines = [
        (number, line.strip())
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.startswith("#")
    ]
    return lines, bool(mode & _OPEN_TO_OTHERS)


def read_users(path: Path) -> UserFile:
    """Read users, one per line."""
    lines, is_open = secret_lines(path, "user file", _FILE_BYTES_MAX, InvalidUserFile)
    hashes = dict(_parsed(line, path, number) for number, line in lines)
    if not hashes:
        raise InvalidUserFile(f"the user file {path} has no user; {_ADVICE}")
    return UserFile(hashes, is_open, path)


_ADVICE = "`python -m headrace.http.users NAME` prints a line"


def _parsed(line: str, path: Path, number: int) -> tuple[str, PasswordHash]:
    name, separator, text = line.partition(":")
    try:
        if not separator or not name:
            raise ValueError("the line is not of the form name:hash")
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
        raise ValueError(f"invalid base64: {error}") from None


_UNKNOWN_USER = PasswordHash(_COST, bytes(_SALT_BYTES), bytes(_HASH_BYTES))
"""Compared with the password of an unknown user, so that it takes as long."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the line of a user; the password is not an argument, so no shell history keeps it."""
    parser = argparse.ArgumentParser(
        prog="python -m headrace.http.users",
        description="Print the line of a user for a user file. Prompt for the password, or read it"
        " from the first line of standard input if that is not a terminal.",
    )
    parser.add_argument("name", metavar="NAME", help="the user's name, without colons")
    name: str = parser.parse_args(arguments).name
    if not name.strip() or ":" in name or name.startswith("#") or not name.isprintable():
        parser.error(f"invalid user name {name!r}: it must not contain colons or start with #")
    password = _read_password()
    if not password:
        parser.error("no password: type one at a terminal, or pipe it in as a line")
    if len(password.encode()) > _PASSWORD_BYTES_MAX:
        parser.error(f"the password is longer than {_PASSWORD_BYTES_MAX} bytes")
    print(f"{name}:{PasswordHash.of(password)}")


def _read_password() -> str:
    if sys.stdin is None:  # A process may run without standard input.
        return ""
    if sys.stdin.isatty():
        return getpass.getpass()
    return sys.stdin.readline(_PASSWORD_BYTES_MAX + 2).rstrip("\r\n")


if __name__ == "__main__":
    main()
