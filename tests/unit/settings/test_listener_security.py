"""Security of listeners: precedence of prefixes, and properties that do not fit together."""

import pytest

from headrace.errors import InvalidConfig, InvalidRequest
from headrace.settings.broker import BrokerSettings
from headrace.settings.broker_layers import BrokerLayers
from headrace.settings.broker_loading import load, with_dynamic
from headrace.settings.dynamic import validate_dynamic
from headrace.settings.listener_security import TlsSettings as Tls
from headrace.settings.listener_security import (
    check_tls,
    listener_security,
    listener_value,
    needing_restart,
)
from headrace.settings.listeners import SecurityProtocol

SECURE = {
    "listeners": "INSIDE://:9092,OUTSIDE://:9093",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:SSL",
    "inter.broker.listener.name": "INSIDE",
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": "/all.pem",
}


def test_a_listener_has_the_protocol_of_the_map() -> None:
    """SEC-2."""
    settings, _ = load(SECURE)
    assert listener_security(settings, "INSIDE").protocol is SecurityProtocol.PLAINTEXT
    assert listener_security(settings, "INSIDE").tls is None
    assert listener_security(settings, "OUTSIDE").protocol is SecurityProtocol.SSL


def test_a_property_of_a_listener_replaces_the_plain_one() -> None:
    """SEC-2."""
    own = {"listener.name.OUTSIDE.ssl.keystore.location": "/outside.pem"}
    settings, warnings = load(SECURE | own)
    assert not warnings
    assert listener_value(settings, "OUTSIDE", "ssl.keystore.location") == "/outside.pem"
    assert listener_value(settings, "INSIDE", "ssl.keystore.location") == "/all.pem"


def test_a_value_of_the_wrong_type_names_the_property_with_its_prefix() -> None:
    with pytest.raises(InvalidConfig, match=r"listener\.name\.a\.ssl\.client\.auth must be one of"):
        load({"listener.name.a.ssl.client.auth": "maybe"})


def test_dynamic_values_replace_those_of_the_file() -> None:
    """SEC-2."""
    name = "listener.name.outside.ssl.keystore.location"
    settings, _ = load(SECURE | {name: "/file.pem"})
    settings = with_dynamic(settings, {}, {name: "/dynamic.pem"})
    security = listener_security(settings, "OUTSIDE")
    assert security.tls is not None
    assert security.tls.keystore_location == "/dynamic.pem"


def test_logins_request_certificates_only_if_the_listener_itself_asks_for_them() -> None:
    """SEC-3: the rule of Kafka for SASL_SSL."""
    outside = {
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:SASL_SSL",
        "ssl.client.auth": "required",
    }
    settings, _ = load(
        SECURE | {"ssl.client.auth": "required", "ssl.truststore.location": "/ca.jks"}
    )
    assert auth_of(with_dynamic(settings, {}, outside)) == "none"
    own = {"listener.name.outside.ssl.client.auth": "requested"}
    assert auth_of(with_dynamic(settings, {}, outside | own)) == "requested"


def auth_of(settings: BrokerSettings) -> str:
    tls = listener_security(settings, "OUTSIDE").tls
    assert tls is not None
    return tls.client_auth


@pytest.mark.parametrize(
    ("tls", "message"),
    [
        (Tls(), "has no certificate"),
        (Tls(keystore_location="/k"), "need each other"),
        (Tls(keystore_key="k"), r"ssl\.keystore\.certificate\.chain of listener A need each other"),
        (Tls(keystore_key="k", keystore_certificate_chain="c"), r"needs ssl\.keystore\.type=PEM"),
        (
            Tls(
                keystore_type="PEM",
                keystore_key="k",
                keystore_certificate_chain="c",
                keystore_location="/k",
            ),
            "exclude each other",
        ),
        (
            Tls(keystore_type="PEM", keystore_location="/k", keystore_password="p"),
            r"is ssl\.key\.password",
        ),
        (Tls(keystore_type="BKS", keystore_location="/k"), "PEM, PKCS12, JKS, not BKS"),
        (Tls(truststore_certificates="c"), r"needs ssl\.truststore\.type=PEM"),
        (
            Tls(truststore_type="PEM", truststore_certificates="c", truststore_location="/t"),
            "exclude each other",
        ),
        (Tls(truststore_password="p"), "of type PKCS12 or JKS"),
        (
            Tls(keystore_type="PEM", keystore_location="/k", client_auth="required"),
            r"set ssl\.truststore\.location",
        ),
        (
            Tls(
                keystore_type="PEM",
                keystore_location="/k",
                protocol="TLSv1.2",
                enabled_protocols=("TLSv1.3",),
            ),
            r"ssl\.enabled\.protocols of listener A",
        ),
    ],
)
def test_properties_that_do_not_fit_together_are_refused(tls: Tls, message: str) -> None:
    """SEC-2: Kafka's rules for key and trust stores."""
    with pytest.raises(InvalidConfig, match=message):
        check_tls(tls, "A")


def test_secrets_are_not_printed() -> None:
    """SEC-9."""
    shown = repr(Tls(keystore_password="hunter2", keystore_key="hunter2", key_password="hunter2"))
    assert "hunter2" not in shown


@pytest.mark.parametrize(
    ("name", "text", "needs_restart"),
    [
        ("listener.name.outside.ssl.keystore.location", "/new", False),
        ("listener.name.outside.ssl.truststore.location", "/new", False),
        ("listener.name.outside.ssl.client.auth", "required", True),
        ("listener.name.OUTSIDE.ssl.client.auth", "required", True),
        ("listener.name.outside.ssl.protocol", "TLSv1.2", False),
        ("listener.name.elsewhere.ssl.client.auth", "required", False),
        ("ssl.client.auth", "required", False),
    ],
)
def test_only_certificates_of_an_open_listener_change_without_a_restart(
    name: str, text: str, needs_restart: bool
) -> None:
    """SEC-2: the rule of Kafka; a value that stays is allowed."""
    settings, _ = load(SECURE | {"listener.name.outside.ssl.protocol": "TLSv1.2"})
    assert needing_restart(settings, {name: text}) == ([name] if needs_restart else [])


def test_a_change_that_needs_a_restart_is_refused_with_advice() -> None:
    """SEC-2."""
    settings, _ = load(SECURE)
    with pytest.raises(InvalidRequest, match="set it in the properties file and restart"):
        validate_dynamic(
            {"listener.name.outside.ssl.client.auth": "required"},
            BrokerLayers(settings),
            is_per_broker=True,
        )
