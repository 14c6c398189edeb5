"""Keys that sign tokens: a JSON web key set, as an authorization server publishes it.

Keys are found by their ids. A token with an unknown key id asks for an early refresh, because the
server may have rotated its keys; that token is rejected, and the client tries again. The number of
such requests is bounded, since any client can invent key ids.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from headrace.errors import HeadraceError
from headrace.security.sasl.oauthbearer_server import TokenRejected

ALGORITHMS = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip
"""Algorithms of signatures; those with a shared secret would let every verifier sign."""

_KEY_TYPES = {"R": "RSA", "P": "RSA", "ES": "EC", "Ed": "OKP"}
_UNKNOWN_IDS_MAX = 16
_ASK_AGAIN_MS = 60_000
_ID_CHARS_MAX = 1000


class InvalidKeys(HeadraceError):
    """A document that is not a JSON web key set, or has no usable key."""


class KeySet:
    """The keys of one source, and the ids that were asked for in vain."""

    def __init__(self) -> None:
        self._keys: tuple[Any, ...] = ()
        self._asked_ms: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def replace(self, document: bytes) -> None:
        """Use the keys of a document from now on; an invalid document changes nothing."""
        self._keys = parse_keys(document)

    def claims_of(self, token: str) -> Mapping[str, Any]:
        """Verify the signature of a token and return its claims."""
        from joserfc import jws
        from joserfc.errors import JoseError

        try:
            signed = jws.deserialize_compact(token, self._key_for, algorithms=ALGORITHMS)
            return msgspec.json.decode(signed.payload, type=dict[str, Any])
        except (JoseError, msgspec.DecodeError, ValueError, TypeError, RecursionError) as error:
            reason = str(error) if isinstance(error, JoseError) else "it is malformed"
            raise TokenRejected(f"the signature of the token is not valid: {reason}") from error

    def _key_for(self, guest: Any) -> Any:
        header = guest.headers()
        key_id, algorithm = header.get("kid"), str(header.get("alg"))
        kind = next((kind for head, kind in _KEY_TYPES.items() if algorithm.startswith(head)), "")
        fitting = [key for key in self._keys if key.key_type == kind]
        if key_id is None and len(fitting) == 1:
            return fitting[0]
        for key in fitting:
            if key_id is not None and key.kid == key_id:
                return key
        raise UnknownKey(key_id if isinstance(key_id, str) else None)

    def asks_for_refresh(self, key_id: str | None, now_ms: int) -> bool:
        """Return whether an unknown key id is a reason to fetch the keys now."""
        if key_id is None or len(key_id) > _ID_CHARS_MAX:
            return False
        asked = self._asked_ms
        for old in [one for one, at_ms in asked.items() if now_ms - at_ms >= _ASK_AGAIN_MS]:
            del asked[old]
        if key_id in asked or len(asked) >= _UNKNOWN_IDS_MAX:
            return False
        asked[key_id] = now_ms
        return True


class UnknownKey(TokenRejected):
    """A token that is signed with a key that the set does not have."""

    def __init__(self, key_id: str | None) -> None:
        super().__init__("the token is signed with an unknown key")
        self.key_id = key_id


def parse_keys(document: bytes) -> tuple[Any, ...]:
    """Return the usable keys of a document, and leave out those of unknown types."""
    from joserfc import jwk
    from joserfc.errors import JoseError

    try:
        rows = msgspec.json.decode(document, type=dict[str, Any])["keys"]
    except (msgspec.DecodeError, KeyError, RecursionError) as error:
        raise InvalidKeys("the document is not a JSON web key set") from error
    keys = []
    for row in rows if isinstance(rows, list) else []:
        if not isinstance(row, dict) or row.get("use", "sig") != "sig":
            continue
        if row.get("kty") not in _KEY_TYPES.values():
            continue
        try:
            keys.append(jwk.import_key(row))
        except (JoseError, ValueError, TypeError, KeyError):
            continue
    if not keys:
        raise InvalidKeys("the document has no key that verifies signatures")
    return tuple(keys)


class Backoff(msgspec.Struct):
    """The waits between attempts to fetch keys: doubled after each failure, up to a bound."""

    first_ms: int
    max_ms: int
    failures: int = 0

    def failed(self) -> int:
        """Return the wait before the next attempt."""
        doublings = min(self.failures, 30)
        self.failures += 1
        return min(self.first_ms << doublings, self.max_ms)
