"""SASL PLAIN (RFC 4616): name and password in plain text, secret only under TLS."""

import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping

from headrace.errors import SaslAuthenticationFailed
from headrace.security.principals import USER, Principal
from headrace.security.sasl import Exchange
from headrace.security.sasl.server import Login, LoginRejected, decoded

_USER_OPTION = "user_"
_NOBODY = secrets.token_bytes(32)
_BLINDING = secrets.token_bytes(32)


def authenticate(username: str, password: str) -> Exchange:
    """Send name and password; the server's answer has no content to check."""
    yield b"\0".join((b"", username.encode(), password.encode()))


class PlainServer:
    """Compares a password with that of the user, or with a random one for an unknown user."""

    def __init__(self, password_of: Callable[[str], str | None]) -> None:
        self._password_of = password_of
        self.login: Login | None = None

    def answer(self, message: bytes) -> bytes:
        parts = decoded(message).split("\0")
        if self.login is not None or len(parts) != 3:
            raise LoginRejected(f"a PLAIN message has 3 parts, not {len(parts)}")
        authorization_id, username, password = parts
        if not username or not password:
            raise LoginRejected("a PLAIN message needs a name and a password")
        is_right = _is_same(password, self._password_of(username))
        if not is_right:
            raise SaslAuthenticationFailed("Authentication failed: Invalid username or password")
        if authorization_id not in ("", username):
            raise SaslAuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        self.login = Login(Principal(USER, username))
        return b""


def users_of(options: Mapping[str, str]) -> dict[str, str]:
    """Return the users of a JAAS entry, whose options are `user_NAME="password"`."""
    return {
        name.removeprefix(_USER_OPTION): password
        for name, password in options.items()
        if name.startswith(_USER_OPTION)
    }


def _is_same(given: str, expected: str | None) -> bool:
    """Compare by keyed hashes, so that neither length nor existence changes the time."""
    wanted = _NOBODY if expected is None else expected.encode()
    return hmac.compare_digest(_blinded(given.encode()), _blinded(wanted))


def _blinded(content: bytes) -> bytes:
    return hmac.digest(_BLINDING, hashlib.sha256(content).digest(), "sha256")
