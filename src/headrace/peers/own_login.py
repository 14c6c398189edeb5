"""The credentials by which this node logs in at other nodes.

They come from the JAAS text of the listener that the node connects to: `username` and `password`,
or options `unsecuredLogin...` for unsigned tokens of development, or `tokenFile` for a signed
token, which another program renews in that file.
"""

import secrets
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from headrace.errors import SaslAuthenticationFailed
from headrace.runtime import files
from headrace.security.sasl import Exchange, oauthbearer, plain, scram
from headrace.settings.listener_logins import OAUTHBEARER, PLAIN, TOKEN_FILE, UNSECURED_SUBJECT

if TYPE_CHECKING:
    from headrace.settings.listener_logins import MechanismSettings

_NONCE_BYTES = 24


class OwnLogin:
    """One mechanism, and a source of new exchanges of it."""

    def __init__(self, mechanism: str, exchange: Callable[[], Exchange]) -> None:
        self.mechanism = mechanism
        self.exchange = exchange

    def __repr__(self) -> str:
        return f"OwnLogin({self.mechanism})"


def own_login(settings: "MechanismSettings | None") -> OwnLogin | None:
    """Return the login of this node; None if the other nodes demand none."""
    if settings is None:
        return None
    options = settings.options
    if settings.name == OAUTHBEARER:
        return OwnLogin(OAUTHBEARER, partial(_by_token, options))
    username, password = options["username"], options["password"]
    if settings.name == PLAIN:
        return OwnLogin(PLAIN, partial(plain.authenticate, username, password))
    mechanism = scram.Mechanism(settings.name)
    return OwnLogin(mechanism, partial(_by_scram, mechanism, username, password))


def _by_scram(mechanism: scram.Mechanism, username: str, password: str) -> Exchange:
    nonce = secrets.token_urlsafe(_NONCE_BYTES)
    return scram.authenticate(mechanism, username, password, nonce)


def _by_token(options: "dict[str, str]") -> Exchange:
    path = options.get(TOKEN_FILE)
    if not path:
        return oauthbearer.authenticate(
            oauthbearer.unsecured_token(options[UNSECURED_SUBJECT], time.time())
        )
    try:
        token = files.read(path).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SaslAuthenticationFailed(f"the token in {path} cannot be read") from error
    return oauthbearer.authenticate(token)
