"""Keys of SCRAM credentials, against the RFC's example and Kafka's numbers."""

import base64

from headrace.security.sasl.scram import Mechanism, server_signature
from headrace.security.scram_credentials import MECHANISM_IDS, credential_of, mechanism_of, new_salt

# The example of RFC 7677, section 3.
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SIGNED = (
    f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={NONCE}"
).encode()


def test_the_keys_are_those_of_the_rfc() -> None:
    import hashlib
    import hmac

    found = credential_of(Mechanism.SHA_256, "pencil", SALT, 4096)
    assert base64.b64encode(hmac.digest(found.server_key, SIGNED, "sha256")) == (
        b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    )
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    signature = hmac.digest(found.stored_key, SIGNED, "sha256")
    client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
    assert hashlib.sha256(client_key).digest() == found.stored_key
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", SALT, 4096)
    assert server_signature(Mechanism.SHA_256, salted, SIGNED) == hmac.digest(
        found.server_key, SIGNED, "sha256"
    )


def test_mechanisms_have_kafkas_numbers() -> None:
    assert dict(MECHANISM_IDS) == {
        "SCRAM-SHA-256": 1,
        "SCRAM-SHA-512": 2,
    }
    assert [mechanism_of(number) for number in (0, 1, 2, 3)] == [
        None,
        Mechanism.SHA_256,
        Mechanism.SHA_512,
        None,
    ]


def test_no_text_of_a_credential_has_a_key() -> None:
    found = credential_of(Mechanism.SHA_512, "pencil", SALT)
    assert repr(found) == "ScramCredential(iterations=4096)"


def test_each_salt_is_another_one() -> None:
    assert len({new_salt() for _ in range(100)}) == 100
