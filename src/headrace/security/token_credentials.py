"""The SCRAM credentials of delegation tokens, by which clients log in with a token."""

import base64
from collections.abc import Callable

from headrace.security.sasl.scram import Mechanism
from headrace.security.sasl.scram_server import TokenCredential
from headrace.security.scram_credentials import ScramCredential, credential_of, new_salt
from headrace.security.tokens import Tokens, is_expired, principal_in, token_secret


class TokenCredentials:
    """The SCRAM credentials of tokens, computed at the first login with each.

    The salts are random, so every node has credentials of its own. That is enough, because a login
    is an exchange with one node.
    """

    def __init__(
        self, secret_key: str, tokens: Callable[[], Tokens], now_ms: Callable[[], int]
    ) -> None:
        self._secret_key = secret_key
        self._tokens = tokens
        self._now_ms = now_ms
        self._computed: dict[tuple[str, Mechanism], ScramCredential] = {}

    def of_token(self, token_id: str, mechanism: Mechanism) -> TokenCredential | None:
        """Return the credential of a token; None if it is unknown or expired."""
        tokens = self._tokens()
        token = tokens.get(token_id)
        if token is None or is_expired(token, self._now_ms()):
            return None
        credential = self._computed.get((token_id, mechanism))
        if credential is None:
            self._forget_removed(tokens)
            password = base64.b64encode(token_secret(self._secret_key, token_id)).decode()
            credential = credential_of(mechanism, password, new_salt())
            self._computed[token_id, mechanism] = credential
        expires_at_ms = min(token.max_timestamp, token.expiration_timestamp)
        return TokenCredential(credential, principal_in(token.owner), expires_at_ms)

    def _forget_removed(self, tokens: Tokens) -> None:
        """Drop the credentials of removed tokens, when they could be as many as the others."""
        if len(self._computed) > len(Mechanism) * 2 * len(tokens):
            self._computed = {key: one for key, one in self._computed.items() if key[0] in tokens}
