"""The credentials by which clients log in with a delegation token."""

import base64

import pytest

from headrace.protocol.schemas.records.metadata import DelegationTokenRecord
from headrace.security.sasl.scram import Mechanism
from headrace.security.scram_credentials import credential_of
from headrace.security.token_credentials import TokenCredentials
from headrace.security.tokens import token_secret
from tests.unit.security.test_tokens import ADA, KEY, a_token


class Clocked:
    """Credentials of a changing set of tokens at a changing time."""

    def __init__(self, *tokens: DelegationTokenRecord) -> None:
        self.tokens = {one.token_id: one for one in tokens}
        self.now_ms = 100
        self.credentials = TokenCredentials(KEY, lambda: self.tokens, lambda: self.now_ms)


@pytest.mark.parametrize("mechanism", Mechanism)
def test_a_token_logs_in_with_its_secret_in_base64(mechanism: Mechanism) -> None:
    """KIP-48: the password is the HMAC in base64, with the least iterations."""
    found = Clocked(a_token("abc")).credentials.of_token("abc", mechanism)
    assert found is not None
    password = base64.b64encode(token_secret(KEY, "abc")).decode()
    assert found.credential == credential_of(mechanism, password, found.credential.salt, 4096)
    assert (found.owner, found.expires_at_ms) == (ADA, 200)


def test_unknown_removed_and_expired_tokens_have_no_credential() -> None:
    clocked = Clocked(a_token("abc"))
    of_token = clocked.credentials.of_token
    assert of_token("xyz", Mechanism.SHA_256) is None
    assert of_token("abc", Mechanism.SHA_256) is not None
    clocked.now_ms = 201
    assert of_token("abc", Mechanism.SHA_256) is None
    clocked.now_ms, clocked.tokens = 100, {}
    assert of_token("abc", Mechanism.SHA_256) is None


def test_a_renewed_token_keeps_its_credential() -> None:
    clocked = Clocked(a_token("abc"))
    before = clocked.credentials.of_token("abc", Mechanism.SHA_512)
    clocked.tokens = {"abc": a_token("abc", expiration_timestamp=250)}
    after = clocked.credentials.of_token("abc", Mechanism.SHA_512)
    assert before is not None
    assert after is not None
    assert after.credential is before.credential
    assert after.expires_at_ms == 250
