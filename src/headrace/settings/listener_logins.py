"""The logins at one listener: its SASL mechanisms, and this node's own credentials there.

As in Kafka, one JAAS text of a listener and mechanism is for both sides. Options `user_NAME` are
the users of PLAIN; `username` and `password` are those of this node when it connects to others.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from headrace.errors import InvalidConfig
from headrace.settings.broker import BrokerSettings
from headrace.settings.jaas import JaasEntry, sole_entry
from headrace.settings.listener_security import listener_security, listener_value

PLAIN, OAUTHBEARER, GSSAPI = "PLAIN", "OAUTHBEARER", "GSSAPI"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
SUPPORTED = (PLAIN, *SCRAM, OAUTHBEARER, GSSAPI)

_UNSECURED_VALIDATOR = "unsecuredValidator"
TOKEN_FILE = "tokenFile"
"""The option with the path of the signed token of this node."""
UNSECURED_SUBJECT = "unsecuredLoginStringClaim_sub"
"""The option with the name of this node in an unsigned token."""

_AT_BROKERS = "sasl.mechanism.inter.broker.protocol"
_AT_CONTROLLERS = "sasl.mechanism.controller.protocol"


class MechanismSettings(msgspec.Struct, frozen=True):
    """One SASL mechanism of one listener."""

    settings: BrokerSettings
    listener: str
    name: str

    def value(self, config: str) -> Any:
        """Return a property of this mechanism, of the listener, or of the node."""
        return listener_value(self.settings, self.listener, config, self.name)

    @property
    def jaas(self) -> JaasEntry | None:
        """The JAAS entry; as in Kafka, only the property with both prefixes counts."""
        text = self.settings.listener_overrides.get(self.jaas_name)
        if text is None:
            return None
        try:
            return sole_entry(text)
        except InvalidConfig as error:
            raise InvalidConfig(f"{self.jaas_name}: {error}") from None

    @property
    def options(self) -> dict[str, str]:
        """The options of the JAAS entry; none without an entry."""
        jaas = self.jaas
        return dict(jaas.options) if jaas is not None else {}

    @property
    def jaas_name(self) -> str:
        """The name of the JAAS property, with both prefixes."""
        return f"listener.name.{self.listener.lower()}.{self.name.lower()}.sasl.jaas.config"


def has_sasl(settings: BrokerSettings, listener: str) -> bool:
    return listener_security(settings, listener).protocol.has_sasl


def mechanisms_of(settings: BrokerSettings, listener: str) -> tuple[MechanismSettings, ...]:
    """Return the mechanisms that clients of a listener may use."""
    enabled = listener_value(settings, listener, "sasl.enabled.mechanisms")
    assert isinstance(enabled, tuple), "a list"
    return tuple(MechanismSettings(settings, listener, name) for name in enabled)


def own_login_at_brokers(settings: BrokerSettings) -> MechanismSettings | None:
    """Return the mechanism of this node as a client of brokers; None if there is no login."""
    return _own_login(settings, settings.wanted_inter_broker_listener, _AT_BROKERS)


def own_login_at_controllers(settings: BrokerSettings) -> MechanismSettings | None:
    """Return the mechanism of this node as a client of controllers; None if there is no login."""
    listener = settings.controller_listener_names[0]
    return _own_login(settings, listener.upper(), _AT_CONTROLLERS)


def _own_login(settings: BrokerSettings, listener: str, config: str) -> MechanismSettings | None:
    if not has_sasl(settings, listener):
        return None
    mechanism = listener_value(settings, listener, config)
    return MechanismSettings(settings, listener, str(mechanism))


def check_logins(settings: BrokerSettings) -> None:
    """Raise unless every SASL listener, and every login at other nodes, is complete."""
    for listener in (*settings.broker_listeners, *settings.controller_listeners):
        if has_sasl(settings, listener.name):
            _check_listener(settings, listener.name)
    if settings.is_single_node:
        return
    for own, config in _own_logins(settings):
        _check_own_login(own, config)


def _own_logins(settings: BrokerSettings) -> Iterator[tuple[MechanismSettings, str]]:
    at_controllers = own_login_at_controllers(settings)
    if at_controllers is not None:
        yield at_controllers, _AT_CONTROLLERS
    if settings.is_broker:
        at_brokers = own_login_at_brokers(settings)
        if at_brokers is not None:
            yield at_brokers, _AT_BROKERS


def _check_listener(settings: BrokerSettings, listener: str) -> None:
    mechanisms = mechanisms_of(settings, listener)
    if not mechanisms:
        raise InvalidConfig(f"sasl.enabled.mechanisms of listener {listener} must name one")
    for mechanism in mechanisms:
        _check_supported(mechanism, "sasl.enabled.mechanisms")
        options = mechanism.options
        if mechanism.name == PLAIN and not _has_plain_users(mechanism):
            raise InvalidConfig(
                f"PLAIN at listener {listener} has no users: set {mechanism.jaas_name} with "
                'options user_NAME="password", or headrace.sasl.plain.users.file'
            )
        if mechanism.name == GSSAPI and not options.get("keyTab"):
            raise InvalidConfig(
                f"GSSAPI at listener {listener} has no keys: set {mechanism.jaas_name} with the "
                "option keyTab"
            )
        if mechanism.name != OAUTHBEARER or mechanism.value("sasl.oauthbearer.jwks.endpoint.url"):
            continue
        if not any(name.startswith(_UNSECURED_VALIDATOR) for name in options):
            raise InvalidConfig(
                f"OAUTHBEARER at listener {listener} needs sasl.oauthbearer.jwks.endpoint.url; "
                "unsigned tokens, for development only, are allowed by options "
                f"{_UNSECURED_VALIDATOR}... in {mechanism.jaas_name}"
            )


def _has_plain_users(mechanism: MechanismSettings) -> bool:
    has_options = any(name.startswith("user_") for name in mechanism.options)
    return has_options or bool(mechanism.value("headrace.sasl.plain.users.file"))


def _check_own_login(own: MechanismSettings, config: str) -> None:
    _check_supported(own, config)
    if own.name == GSSAPI:
        raise InvalidConfig(f"{config}: nodes do not log in by {GSSAPI}; use {PLAIN}")
    if own.name in SCRAM and config == _AT_CONTROLLERS:
        raise InvalidConfig(
            f"{config} cannot be {own.name}: its credentials are in the metadata, which "
            f"controllers have only after they have reached each other; use {PLAIN}"
        )
    enabled = mechanisms_of(own.settings, own.listener)
    if config == _AT_BROKERS and own.name not in [one.name for one in enabled]:
        raise InvalidConfig(
            f"{config} of listener {own.listener}: {own.name} is not in sasl.enabled.mechanisms"
        )
    options = own.options
    by_token = (UNSECURED_SUBJECT,) if TOKEN_FILE not in options else (TOKEN_FILE,)
    needed = by_token if own.name == OAUTHBEARER else ("username", "password")
    missing = [name for name in needed if not options.get(name)]
    if missing:
        raise InvalidConfig(
            f"{own.jaas_name} must have the option {missing[0]}, by which this node logs in at "
            f"other nodes with {config}={own.name}"
        )


def _check_supported(mechanism: MechanismSettings, config: str) -> None:
    if mechanism.name not in SUPPORTED:
        raise InvalidConfig(
            f"{config} of listener {mechanism.listener}: {mechanism.name} is not one of "
            f"{', '.join(SUPPORTED)}"
        )
