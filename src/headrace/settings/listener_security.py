"""The security of one listener: its protocol, and the properties that apply to it.

A property with the prefix `listener.name.NAME.` applies to one listener, and with
`listener.name.NAME.MECHANISM.` to one of its SASL mechanisms. The longest prefix that is set wins;
without any, the plain property applies.
"""

import re
from collections.abc import Mapping

import msgspec

from headrace.errors import InvalidConfig
from headrace.settings.broker import BROKER_CONFIGS, BrokerSettings, field_name
from headrace.settings.definitions import Value
from headrace.settings.listeners import SecurityProtocol

PEM, PKCS12, JKS = "PEM", "PKCS12", "JKS"
_STORE_TYPES = (PEM, PKCS12, JKS)

OF_EVERY_BROKER = ("max.connections", "max.connection.creation.rate")
"""Properties of a listener that may also be set for all brokers at once."""

_LISTENER_CONFIG = re.compile(r"listener\.name\.[^.]*\.(.*)")
_MECHANISM = re.compile(r"(?:plain|scram-sha-256|scram-sha-512|oauthbearer|gssapi)\.(.*)")
_MECHANISM_CONFIGS = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
_OF_LISTENERS = ("ssl.", "sasl.", "headrace.ssl.", "headrace.sasl.", "connections.max.reauth.ms")

_LIMITS = frozenset({"max.connections", "max.connection.creation.rate", "num.network.threads"})

RELOADABLE = frozenset(
    {
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "ssl.key.password",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.certificates",
    }
)
"""Properties that change on a listener that is open, as in Kafka."""


class TlsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The TLS properties of one listener; a field is a property without `ssl.`."""

    client_auth: str = "none"
    keystore_type: str = JKS
    keystore_location: str | None = None
    keystore_password: str | None = None
    keystore_key: str | None = None
    keystore_certificate_chain: str | None = None
    key_password: str | None = None
    truststore_type: str = JKS
    truststore_location: str | None = None
    truststore_password: str | None = None
    truststore_certificates: str | None = None
    protocol: str = "TLSv1.3"
    enabled_protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    cipher_suites: tuple[str, ...] = ()
    endpoint_identification_algorithm: str = "https"
    principal_mapping_rules: str = "DEFAULT"
    allow_dn_changes: bool = False
    allow_san_changes: bool = False
    crl_location: str | None = None

    def __repr__(self) -> str:
        """Show locations only, so that no key or password gets into a log."""
        places = (self.keystore_location, self.truststore_location, self.crl_location)
        return f"TlsSettings({', '.join(place or '-' for place in places)})"

    @property
    def has_keystore(self) -> bool:
        return self.keystore_location is not None or self.keystore_key is not None

    @property
    def has_truststore(self) -> bool:
        return self.truststore_location is not None or self.truststore_certificates is not None

    @property
    def versions(self) -> tuple[str, ...]:
        """The enabled versions up to `ssl.protocol`, oldest first."""
        newest = "TLSv1.2" if self.protocol == "TLSv1.2" else "TLSv1.3"
        return tuple(one for one in sorted(self.enabled_protocols) if one <= newest)

    @property
    def files(self) -> tuple[str, ...]:
        """The files from which contexts are made."""
        places = (self.keystore_location, self.truststore_location, self.crl_location)
        return tuple(place for place in places if place is not None)


class ListenerSecurity(msgspec.Struct, frozen=True):
    """The security of one listener."""

    name: str
    protocol: SecurityProtocol
    tls: TlsSettings | None = None
    """None without TLS."""


def listener_security(settings: BrokerSettings, name: str) -> ListenerSecurity:
    """Return the security of a listener, whether this node or only others have it."""
    protocol = SecurityProtocol[settings.protocols.get(name, SecurityProtocol.PLAINTEXT.name)]
    tls = _tls_settings(settings, name, protocol) if protocol.has_tls else None
    return ListenerSecurity(name, protocol, tls)


def listener_value(
    settings: BrokerSettings, listener: str, config: str, mechanism: str | None = None
) -> Value:
    """Return the value of a property for a listener and, with `mechanism`, for one of its logins.

    The result is the plain property's if no property with a prefix is set.
    """
    own = own_listener_value(settings, listener, config, mechanism)
    if own is not None:
        return own
    value: Value = getattr(settings, field_name(config))
    return value


def own_listener_value(
    settings: BrokerSettings, listener: str, config: str, mechanism: str | None = None
) -> Value:
    """Return the value of a property with the listener's prefix; None if it is not set."""
    for name in _prefixed(listener, config, mechanism):
        text = settings.listener_overrides.get(name)
        if text is not None:
            return BROKER_CONFIGS[config].read(text)
    return None


def base_name(name: str) -> str:
    """The config after the prefix `listener.name.<listener>.`, which defines the type."""
    match = _LISTENER_CONFIG.fullmatch(name)
    if match is None:
        return name
    of_mechanism = _MECHANISM.fullmatch(match[1])
    base = match[1] if of_mechanism is None else of_mechanism[1]
    return next((one for one in _MECHANISM_CONFIGS if base.endswith(one)), base)


def is_listener_override(name: str) -> bool:
    """Return whether a name is a property of one listener that has an effect."""
    base = base_name(name)
    has_effect = base in OF_EVERY_BROKER or base.startswith(_OF_LISTENERS)
    return base != name and base in BROKER_CONFIGS and has_effect


def needing_restart(settings: BrokerSettings, changes: Mapping[str, str]) -> list[str]:
    """Return the changed properties of open listeners that only a restart can apply."""
    own = (*settings.broker_listeners, *settings.controller_listeners)
    prefixes = tuple(_prefix(listener.name) for listener in own)
    present = settings.listener_overrides
    return sorted(
        name
        for name, text in changes.items()
        if name.lower().startswith(prefixes)
        and is_listener_override(name)
        and base_name(name) not in RELOADABLE | _LIMITS
        and present.get(name) != text
    )


def check_listener_security(settings: BrokerSettings) -> None:
    """Raise unless every listener of this node has what its protocol needs."""
    for listener in (*settings.broker_listeners, *settings.controller_listeners):
        security = listener_security(settings, listener.name)
        if security.tls is not None:
            check_tls(security.tls, listener.name)


def check_tls(tls: TlsSettings, listener: str) -> None:
    """Raise unless the TLS properties of a listener of this node fit together."""
    _check_keystore(tls, listener)
    _check_truststore(tls, listener)
    if not tls.has_keystore:
        raise InvalidConfig(
            f"listeners: {listener} uses TLS and has no certificate; set ssl.keystore.location to "
            "a file with key and certificate, and ssl.keystore.type=PEM for a PEM file"
        )
    if tls.client_auth == "required" and not tls.has_truststore:
        raise InvalidConfig(
            f"ssl.client.auth=required of listener {listener} needs the authorities of client "
            "certificates; set ssl.truststore.location"
        )
    if not tls.versions:
        raise InvalidConfig(
            f"ssl.enabled.protocols of listener {listener} must include a version up to "
            f"ssl.protocol={tls.protocol}"
        )


def _check_keystore(tls: TlsSettings, listener: str) -> None:
    """Check Kafka's rules of a keystore."""
    of = f"of listener {listener}"
    location, password = tls.keystore_location, tls.keystore_password
    _check_type("ssl.keystore.type", tls.keystore_type, of)
    if (tls.keystore_key is None) != (tls.keystore_certificate_chain is None):
        raise InvalidConfig(
            f"ssl.keystore.key and ssl.keystore.certificate.chain {of} need each other"
        )
    if tls.keystore_key is not None and tls.keystore_type != PEM:
        raise InvalidConfig(f"ssl.keystore.key {of} needs ssl.keystore.type=PEM")
    if tls.keystore_key is not None and location is not None:
        raise InvalidConfig(f"ssl.keystore.key and ssl.keystore.location {of} exclude each other")
    if tls.keystore_type == PEM and password is not None:
        raise InvalidConfig(
            f"ssl.keystore.password {of} is not for PEM; the password of a key is ssl.key.password"
        )
    if tls.keystore_type != PEM and (location is None) != (password is None):
        raise InvalidConfig(
            f"ssl.keystore.location and ssl.keystore.password {of} need each other, unless "
            "ssl.keystore.type=PEM"
        )


def _check_truststore(tls: TlsSettings, listener: str) -> None:
    """Check Kafka's rules of a truststore."""
    of = f"of listener {listener}"
    location, password = tls.truststore_location, tls.truststore_password
    _check_type("ssl.truststore.type", tls.truststore_type, of)
    if tls.truststore_certificates is not None and tls.truststore_type != PEM:
        raise InvalidConfig(f"ssl.truststore.certificates {of} needs ssl.truststore.type=PEM")
    if tls.truststore_certificates is not None and location is not None:
        raise InvalidConfig(
            f"ssl.truststore.certificates and ssl.truststore.location {of} exclude each other"
        )
    if password is not None and (tls.truststore_type == PEM or location is None):
        raise InvalidConfig(
            f"ssl.truststore.password {of} is for ssl.truststore.location of type PKCS12 or JKS"
        )


def _check_type(config: str, value: str, of: str) -> None:
    if value not in _STORE_TYPES:
        raise InvalidConfig(f"{config} {of} must be one of {', '.join(_STORE_TYPES)}, not {value}")


def _tls_settings(settings: BrokerSettings, name: str, protocol: SecurityProtocol) -> TlsSettings:
    values = {
        field: listener_value(settings, name, f"ssl.{field.replace('_', '.')}")
        for field in TlsSettings.__struct_fields__
        if field != "crl_location"
    }
    values["crl_location"] = listener_value(settings, name, "headrace.ssl.crl.location")
    if protocol is SecurityProtocol.SASL_SSL:
        # As in Kafka: logins replace certificates unless the listener itself requests them.
        values["client_auth"] = own_listener_value(settings, name, "ssl.client.auth") or "none"
    return msgspec.convert(values, TlsSettings)


def _prefix(listener: str) -> str:
    return f"listener.name.{listener.lower()}."


def _prefixed(listener: str, config: str, mechanism: str | None) -> tuple[str, ...]:
    prefix = _prefix(listener)
    if mechanism is None:
        return (f"{prefix}{config}",)
    return f"{prefix}{mechanism.lower()}.{config}", f"{prefix}{config}"
