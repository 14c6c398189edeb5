"""The logins of listeners: which properties count, and which settings cannot work."""

import pytest

from headrace.errors import InvalidConfig
from headrace.settings.broker import BrokerSettings
from headrace.settings.broker_loading import load
from headrace.settings.listener_logins import (
    mechanisms_of,
    own_login_at_brokers,
    own_login_at_controllers,
)

PLAIN = 'p.PlainLoginModule required user_ada="secret" username="node" password="hidden";'
SASL = {"listeners": "OUT://:9092", "listener.security.protocol.map": "OUT:SASL_PLAINTEXT"}
CLUSTER = {
    "listeners": "IN://:9092,CTL://:9093",
    "listener.security.protocol.map": "IN:SASL_PLAINTEXT,CTL:SASL_PLAINTEXT",
    "controller.listener.names": "CTL",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "inter.broker.listener.name": "IN",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.in.plain.sasl.jaas.config": PLAIN,
    "listener.name.ctl.plain.sasl.jaas.config": PLAIN,
}


def loaded(properties: dict[str, str], **more: str) -> BrokerSettings:
    return load({**properties, **more})[0]


def test_a_mechanism_has_properties_of_its_own() -> None:
    settings = load(
        {
            **SASL,
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.out.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.OUT.plain.sasl.jaas.config": PLAIN,
            "connections.max.reauth.ms": "1000",
            "listener.name.out.connections.max.reauth.ms": "2000",
            "listener.name.out.plain.connections.max.reauth.ms": "3000",
        }
    )[0]
    plain, scram = mechanisms_of(settings, "OUT")
    assert (plain.name, scram.name) == ("PLAIN", "SCRAM-SHA-256")
    assert plain.options["user_ada"] == "secret"
    assert plain.value("connections.max.reauth.ms") == 3000
    assert scram.value("connections.max.reauth.ms") == 2000
    assert scram.options == {}


def test_oauthbearer_has_properties_of_its_own() -> None:
    url = "listener.name.out.oauthbearer.sasl.oauthbearer.jwks.endpoint.url"
    settings = load(
        {
            **SASL,
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            url: "https://id/keys",
            "sasl.oauthbearer.expected.audience": "a,b",
        }
    )[0]
    (mechanism,) = mechanisms_of(settings, "OUT")
    assert mechanism.value("sasl.oauthbearer.jwks.endpoint.url") == "https://id/keys"
    assert mechanism.value("sasl.oauthbearer.expected.audience") == ("a", "b")


def test_a_node_of_a_cluster_has_credentials_of_its_own() -> None:
    settings = loaded(CLUSTER)
    for own in (own_login_at_brokers(settings), own_login_at_controllers(settings)):
        assert own is not None
        assert (own.name, own.options["username"]) == ("PLAIN", "node")


def test_a_node_without_sasl_has_no_logins() -> None:
    settings = loaded({})
    assert own_login_at_brokers(settings) is None
    assert own_login_at_controllers(settings) is None


OAUTH = "o.OAuthBearerLoginModule required"


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({}, "GSSAPI at listener OUT has no keys"),
        ({"sasl.enabled.mechanisms": "plain"}, "plain is not one of PLAIN"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "PLAIN at listener OUT has no users"),
        (
            {"sasl.enabled.mechanisms": "PLAIN", "listener.name.out.sasl.jaas.config": PLAIN},
            "PLAIN at listener OUT has no users",
        ),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.out.plain.sasl.jaas.config": "x required a=secret",
            },
            "listener.name.out.plain.sasl.jaas.config: an entry of the JAAS",
        ),
        (
            {
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                "listener.name.out.oauthbearer.sasl.jaas.config": f"{OAUTH};",
            },
            "needs sasl.oauthbearer.jwks.endpoint.url",
        ),
    ],
)
def test_an_incomplete_listener_is_rejected(properties: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        load({**SASL, **properties})
    assert message in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_file_of_users_or_an_option_for_unsigned_tokens_is_enough() -> None:
    assert load(
        {
            **SASL,
            "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
            "headrace.sasl.plain.users.file": "/etc/users",
            "listener.name.out.oauthbearer.sasl.jaas.config": (
                f'{OAUTH} unsecuredValidatorScopeClaimName="scope";'
            ),
        }
    )


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        (
            {"listener.name.in.plain.sasl.jaas.config": 'p.P required user_ada="secret";'},
            "listener.name.in.plain.sasl.jaas.config must have the option username",
        ),
        (
            {"sasl.mechanism.controller.protocol": "SCRAM-SHA-256"},
            "sasl.mechanism.controller.protocol cannot be SCRAM-SHA-256",
        ),
        (
            {"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512"},
            "SCRAM-SHA-512 is not in sasl.enabled.mechanisms",
        ),
    ],
)
def test_an_incomplete_login_at_other_nodes_is_rejected(
    properties: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidConfig) as refused:
        load({**CLUSTER, **properties})
    assert message in str(refused.value)
    assert "secret" not in str(refused.value)


def test_secrets_of_logins_are_not_shown() -> None:
    assert "hidden" not in repr(loaded(CLUSTER))
    assert "hidden" not in repr(mechanisms_of(loaded(CLUSTER), "IN"))
