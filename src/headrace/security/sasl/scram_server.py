"""The server's side of SCRAM (RFC 5802), with the keys that the metadata has of each user.

The server has no passwords, and computes no PBKDF2: a login costs four HMACs. An unknown user gets
a challenge as well, with a salt that is always the same for that name. So neither the answers nor
the time show whether a user exists.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from headrace.errors import SaslAuthenticationFailed
from headrace.security.principals import USER, Principal
from headrace.security.sasl.scram import ITERATIONS_MIN, TOKEN_AUTH, Mechanism
from headrace.security.sasl.server import Login, LoginRejected, decoded
from headrace.security.scram_credentials import ScramCredential

_NAME_CHARS_MAX = 1024
_SALT_BYTES = 24
_KAFKAS_DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyz"
_FIRST = re.compile(
    r"(?P<header>[ny],(?:a=(?P<authorization>(?:[^\0=,]|=2C|=3D)+))?,)"
    r"(?P<bare>n=(?P<name>(?:[^\0=,]|=2C|=3D)+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)"
    r"(?P<extensions>(?:,[A-Za-z]+=[^\0,]+)*))"
)
_FINAL = re.compile(
    r"(?P<unproven>c=(?P<binding>[A-Za-z0-9+/=]+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)"
    r"(?:,[A-Za-z]+=[^\0,]+)*),p=(?P<proof>[A-Za-z0-9+/=]+)"
)


class TokenCredential(msgspec.Struct, frozen=True):
    """The keys of a delegation token, and its owner."""

    credential: ScramCredential
    owner: Principal
    expires_at_ms: int


class ScramCredentials(Protocol):
    """Looks up keys; the metadata has them."""

    def of_user(self, name: str, mechanism: Mechanism) -> ScramCredential | None: ...

    def of_token(self, token_id: str, mechanism: Mechanism) -> TokenCredential | None: ...

    def example(self, mechanism: Mechanism) -> ScramCredential | None:
        """Return the keys of a usual user, whose form those of unknown users get."""
        ...


class ScramServer:
    """One login of a user or of a delegation token."""

    def __init__(
        self,
        mechanism: Mechanism,
        credentials: ScramCredentials,
        *,
        decoy_key: bytes,
        new_nonce: Callable[[], str],
        now_ms: Callable[[], int],
    ) -> None:
        """`decoy_key` is the secret from which the salts of unknown users are derived."""
        self._mechanism = mechanism
        self._credentials = credentials
        self._decoy_key = decoy_key
        self._new_nonce = new_nonce
        self._now_ms = now_ms
        self._challenge: _Challenge | None = None
        self._is_over = False
        self.login: Login | None = None

    def answer(self, message: bytes) -> bytes:
        if self._is_over:
            raise LoginRejected("the SCRAM exchange is over")
        text = decoded(message)
        if self._challenge is None:
            return self._first(text)
        self._is_over = True
        return self._final(self._challenge, text)

    def _first(self, text: str) -> bytes:
        found = _FIRST.fullmatch(text)
        if found is None or len(found["name"]) > _NAME_CHARS_MAX:
            raise LoginRejected("the client's first SCRAM message is malformed")
        name = found["name"].replace("=2C", ",").replace("=3D", "=")
        authorization = (found["authorization"] or "").replace("=2C", ",").replace("=3D", "=")
        if authorization not in ("", name):
            raise SaslAuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        extensions = _extensions(found["extensions"])
        is_token = extensions.get(TOKEN_AUTH, "").lower() == "true"
        credential, login = self._token(name) if is_token else self._user(name)
        decoy = self._decoy(name)  # Also for a user that exists, so that the time shows nothing.
        shown = credential or decoy
        nonce = found["nonce"] + self._new_nonce()
        answer = f"r={nonce},s={_base64(shown.salt)},i={shown.iterations}"
        self._challenge = _Challenge(
            nonce=nonce,
            header=found["header"],
            signed=f"{found['bare']},{answer}",
            credential=shown,
            login=login,
        )
        return answer.encode()

    def _user(self, name: str) -> "tuple[ScramCredential | None, Login | None]":
        credential = self._credentials.of_user(name, self._mechanism)
        return credential, Login(Principal(USER, name)) if credential is not None else None

    def _token(self, token_id: str) -> "tuple[ScramCredential | None, Login | None]":
        token = self._credentials.of_token(token_id, self._mechanism)
        if token is None or token.expires_at_ms <= self._now_ms():
            return None, None
        owner = Principal(token.owner.type, token.owner.name, is_token_authenticated=True)
        return token.credential, Login(owner, token.expires_at_ms)

    def _decoy(self, name: str) -> ScramCredential:
        """Return keys for a user that does not exist, always the same ones for a name."""
        label = f"{self._mechanism}\0{name}\0".encode()
        example = self._credentials.example(self._mechanism)
        seed = hmac.digest(self._decoy_key, label + b"salt", "sha512")
        salt = _like(example.salt, seed) if example is not None else seed[:_SALT_BYTES]
        key = hmac.digest(self._decoy_key, label + b"key", self._mechanism.hash_name)
        iterations = example.iterations if example is not None else ITERATIONS_MIN
        return ScramCredential(salt, key, key, iterations)

    def _final(self, challenge: "_Challenge", text: str) -> bytes:
        found = _FINAL.fullmatch(text)
        if found is None:
            raise LoginRejected("the client's final SCRAM message is malformed")
        signed = f"{challenge.signed},{found['unproven']}".encode()
        credential, hash_name = challenge.credential, self._mechanism.hash_name
        is_proven = _is_proven(hash_name, credential.stored_key, signed, found["proof"])
        is_bound = found["binding"] == _base64(challenge.header.encode())
        if found["nonce"] != challenge.nonce or not is_bound:
            raise LoginRejected("the client's final SCRAM message belongs to another exchange")
        if not is_proven or challenge.login is None:
            raise LoginRejected("unknown user or wrong password")
        self.login = challenge.login
        signature = hmac.digest(credential.server_key, signed, hash_name)
        return f"v={_base64(signature)}".encode()


class _Challenge(msgspec.Struct, frozen=True):
    """The state between the two messages of a client; without a login, the user is unknown."""

    nonce: str
    header: str
    signed: str
    credential: ScramCredential
    login: Login | None


def _is_proven(hash_name: str, stored_key: bytes, signed: bytes, proof: str) -> bool:
    signature = hmac.digest(stored_key, signed, hash_name)
    try:
        given = base64.b64decode(proof, validate=True)
    except binascii.Error:
        given = b""
    padded = given.ljust(len(signature), b"\0")[: len(signature)]
    client_key = bytes(one ^ other for one, other in zip(padded, signature, strict=True))
    computed = hashlib.new(hash_name, client_key).digest()
    return hmac.compare_digest(computed, stored_key) and len(given) == len(signature)


def _like(salt: bytes, seed: bytes) -> bytes:
    """Return a salt of the form of another one: Kafka's tools write digits of base 36."""
    made = (seed * (len(salt) // len(seed) + 1))[: len(salt)]
    if not salt.isalnum():
        return made
    return bytes(_KAFKAS_DIGITS[one % len(_KAFKAS_DIGITS)] for one in made)


def _extensions(text: str) -> Mapping[str, str]:
    pairs = (part.partition("=") for part in text.split(",") if part)
    return {name: value for name, _, value in pairs}


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
