"""First users in kafka-storage's form, and the errors of malformed ones."""

import base64

import pytest

from headrace.errors import InvalidConfig
from headrace.metadata.log.first_users import parse_first_user
from headrace.security.sasl.scram import Mechanism, salted_password
from headrace.security.scram_credentials import credential_of

SALT = b"0123456789abcdef"
SALT_TEXT = base64.b64encode(SALT).decode()
SALTED = base64.b64encode(salted_password(Mechanism.SHA_256, "secret", SALT, 8192)).decode()
EXPECTED = credential_of(Mechanism.SHA_256, "secret", SALT, 8192)


@pytest.mark.parametrize(
    "text",
    [
        f"SCRAM-SHA-256=[name=ada,password=secret,salt={SALT_TEXT},iterations=8192]",
        f' SCRAM-SHA-256=[iterations=8192,salt="{SALT_TEXT}",name="ada",password="secret"] ',
        f"SCRAM-SHA-256=[name=ada,salt={SALT_TEXT},iterations=8192,saltedpassword={SALTED}]",
        f"SCRAM-SHA-256=[name=ada,salt={SALT_TEXT.rstrip('=')},iterations=8192,password=secret]",
    ],
)
def test_each_form_gives_the_same_record(text: str) -> None:
    record = parse_first_user(text)
    assert (record.name, record.mechanism, record.iterations) == ("ada", 1, 8192)
    assert (record.salt, record.stored_key, record.server_key) == (
        SALT,
        EXPECTED.stored_key,
        EXPECTED.server_key,
    )


def test_salt_and_iterations_have_defaults() -> None:
    one, other = (parse_first_user("SCRAM-SHA-512=[name=ada,password=a=b]") for _ in range(2))
    assert (one.mechanism, one.iterations) == (2, 4096)
    assert one.salt != other.salt
    assert one.stored_key == credential_of(Mechanism.SHA_512, "a=b", one.salt).stored_key


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SCRAM-SHA-256", "no mechanism"),
        ("SCRAM-SHA-1=[name=ada,password=hidden]", "not a SCRAM mechanism"),
        ("SCRAM-SHA-256=name=ada,password=hidden", "brackets"),
        ("SCRAM-SHA-256=[name=ada,password=hidden", "brackets"),
        ("SCRAM-SHA-256=[name=ada,hidden]", "part 2 .* no equals sign"),
        ("SCRAM-SHA-256=[password=hidden]", "no name"),
        ("SCRAM-SHA-256=[name=,password=hidden]", "no name"),
        ("SCRAM-SHA-256=[name=ada]", "one of password and saltedpassword"),
        ("SCRAM-SHA-256=[name=ada,password=hidden,saltedpassword=hidden]", "one of password"),
        ("SCRAM-SHA-256=[name=ada,saltedpassword=hidden]", "needs its salt"),
        ("SCRAM-SHA-256=[name=ada,saltedpassword=,salt=aaaa]", "must not be empty"),
        ("SCRAM-SHA-256=[name=ada,saltedpassword=hi!dden,salt=aaaa]", "is not base64"),
        ("SCRAM-SHA-256=[name=ada,password=hidden,salt=?]", "salt .* is not base64"),
        ("SCRAM-SHA-256=[name=ada,password=hidden,iterations=4095]", "between 4096 and 16384"),
        ("SCRAM-SHA-256=[name=ada,password=hidden,iterations=16385]", "between 4096 and 16384"),
        ("SCRAM-SHA-256=[name=ada,password=hidden,iterations=many]", "between 4096 and 16384"),
        ("SCRAM-SHA-256=[name=ada,password=hidden,role=admin]", "'role' is not part"),
    ],
)
def test_a_malformed_user_is_rejected_without_showing_a_password(text: str, message: str) -> None:
    with pytest.raises(InvalidConfig, match=message) as caught:
        parse_first_user(text)
    assert "hidden" not in str(caught.value)
