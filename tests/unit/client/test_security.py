"""Security settings of a properties file."""

import pytest

from headrace.client.properties import InvalidProperty, for_librdkafka
from headrace.client.security import Sasl, Security, Tls
from headrace.errors import HeadraceError

LOGIN = {"sasl.username": "ada", "sasl.password": "secret"}


def test_plain_is_the_default() -> None:
    assert Security.of({}) == Security()


def test_tls_settings_have_librdkafkas_names() -> None:
    security = Security.of(
        {
            "security.protocol": "ssl",
            "ssl.ca.location": "ca.pem",
            "enable.ssl.certificate.verification": "false",
            "ssl.endpoint.identification.algorithm": "none",
        }
    )
    assert security.sasl is None
    assert security.tls == Tls(ca_location="ca.pem", verify_certificate=False, verify_host=False)


@pytest.mark.parametrize("name", ["sasl.mechanism", "sasl.mechanisms"])
def test_a_login_has_librdkafkas_names(name: str) -> None:
    security = Security.of({"security.protocol": "SASL_SSL", name: "scram-sha-512", **LOGIN})
    assert security.tls == Tls()
    assert security.sasl == Sasl(mechanism="SCRAM-SHA-512", username="ada", password="secret")


def test_a_login_for_java_is_understood() -> None:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    security = Security.of(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": f'{module} required username="ada" password="a \\"b\\"; c";',
        }
    )
    assert security.sasl == Sasl(mechanism="SCRAM-SHA-256", username="ada", password='a "b"; c')


def test_a_login_by_a_delegation_token_is_marked_for_the_broker() -> None:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    login = f'{module} required username="id" password="hmac" tokenauth="true";'
    protocol = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-256"}
    ours = {"sasl.username": "id", "sasl.password": "hmac", "sasl.tokenauth": "true"}
    for given in ({"sasl.jaas.config": login}, ours):
        sasl = Security.of({**protocol, **given}).sasl
        assert sasl is not None
        assert next(sasl.exchange()).endswith(b",tokenauth=true")


def test_librdkafka_refuses_a_login_by_a_delegation_token() -> None:
    with pytest.raises(InvalidProperty, match="cannot log in by a delegation token"):
        for_librdkafka({**LOGIN, "sasl.tokenauth": "true"})
    assert for_librdkafka({**LOGIN, "sasl.tokenauth": "false"}) == LOGIN


def test_pem_stores_for_java_are_understood() -> None:
    security = Security.of(
        {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "ca.pem",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": "me.pem",
        }
    )
    assert security.tls == Tls(
        ca_location="ca.pem", certificate_location="me.pem", key_location="me.pem"
    )


def test_a_token_is_given_or_created_for_each_login() -> None:
    bearer = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    given = Security.of({**bearer, "sasl.oauthbearer.token": "abc"}).sasl
    assert given is not None
    assert next(given.exchange()) == b"n,,\x01auth=Bearer abc\x01\x01"
    unsecured = {
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": "principal=ada",
    }
    made = Security.of({**bearer, **unsecured}).sasl
    assert made is not None
    assert next(made.exchange()).startswith(b"n,,\x01auth=Bearer ey")


@pytest.mark.parametrize(
    ("properties", "reported"),
    [
        ({"security.protocol": "TLS"}, "must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism GSSAPI is not supported; use one of"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "PLAIN needs sasl.username"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, "needs a token"),
        ({"sasl.usrname": "ada"}, "'sasl.usrname'. Did you mean sasl.username"),
        ({"security.protocol": "SSL", "ssl.keystore.location": "a.p12"}, "is not supported"),
    ],
)
def test_inconsistent_properties_are_rejected_with_advice(
    properties: dict[str, str], reported: str
) -> None:
    with pytest.raises(InvalidProperty, match=reported):
        Security.of(properties)


def test_an_unreadable_certificate_is_reported_with_its_property() -> None:
    tls = Security.of({"security.protocol": "SSL", "ssl.ca.location": "/nowhere/ca.pem"}).tls
    assert tls is not None
    with pytest.raises(InvalidProperty, match=r"ssl\.ca\.location"):
        _ = tls.context


def test_a_password_is_never_shown() -> None:
    security = Security.of({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", **LOGIN})
    assert "secret" not in repr(security)


def test_a_key_is_never_shown() -> None:
    tls = Tls(
        ca_location="/etc/ca.pem",
        certificate_pem="the certificate",
        key_pem="secret key",
        key_password="secret word",
    )
    assert "secret" not in repr(Security(tls))
    assert "/etc/ca.pem" in repr(tls)


@pytest.mark.parametrize(
    "login",
    [
        'a.PlainLoginModule required username="ada" password="secret"',
        'a.Krb5LoginModule required username="ada" password="secret";',
        'a.PlainLoginModule required username="ada";',
    ],
)
def test_an_unusable_login_for_java_is_rejected_without_its_password(login: str) -> None:
    properties = {"security.protocol": "SASL_SSL", "sasl.jaas.config": login}
    with pytest.raises(HeadraceError, match=r"sasl\.jaas\.config") as caught:
        Security.of(properties)
    assert "secret" not in str(caught.value)
