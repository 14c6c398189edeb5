"""The file of users and passwords for PLAIN, which is read again when it changes.

A line is `name=password`; empty lines and lines that begin with `#` are ignored. A name may contain
no `=`. White space around names and passwords does not count.
"""

from collections.abc import Callable, Mapping

from headrace.errors import HeadraceError, InvalidConfig

Stamp = tuple[int, int, int]
"""Identity, size and time of a file; a change of any means a changed file."""


def parse_users(text: str) -> dict[str, str]:
    """Return passwords by name; an error names the line and repeats no content."""
    users: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        name, equals, password = (part.strip() for part in stripped.partition("="))
        if not (equals and name and password):
            raise InvalidConfig(f"line {number} of the file of users is not name=password")
        if name in users:
            raise InvalidConfig(f"line {number} of the file of users repeats a name")
        users[name] = password
    return users


class UsersFile:
    """The users of a file. A file that becomes invalid or unreadable keeps the last valid users."""

    def __init__(
        self,
        stamp: Callable[[], Stamp | None],
        read: Callable[[], str],
        failed: Callable[[str], None],
    ) -> None:
        """`stamp` returns None for a missing file; `failed` reports why the old users stay."""
        self._stamp = stamp
        self._read = read
        self._failed = failed
        self._seen = stamp()
        self.users: Mapping[str, str] = parse_users(read())

    def refresh(self) -> bool:
        """Read the file if it has changed; return whether the users are replaced."""
        stamp = self._stamp()
        if stamp == self._seen:
            return False
        self._seen = stamp
        if stamp is None:
            self._failed("the file is missing")
            return False
        try:
            self.users = parse_users(self._read())
        except (OSError, ValueError, HeadraceError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            is_text = isinstance(error, HeadraceError)
            self._failed(reason or (str(error) if is_text else "the file is not UTF-8 text"))
            return False
        return True
