"""Listener texts such as `PLAINTEXT://localhost:9092`, and the rules that a set of them obeys."""

from collections.abc import Iterable, Mapping
from enum import IntEnum

import msgspec

from headrace.errors import InvalidConfig
from headrace.runtime.addresses import address_text


class SecurityProtocol(IntEnum):
    """The security protocols of listeners, with the numbers that registrations carry."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3

    @property
    def has_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def has_sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


PROTOCOLS = tuple(SecurityProtocol.__members__)
_PORT_MAX = 65535
_EVERY_INTERFACE = ("0.0.0.0", "::", "")


class Listener(msgspec.Struct, frozen=True):
    """One address under a name; an empty host means every interface."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{address_text(self.host, self.port)}"

    @property
    def is_every_interface(self) -> bool:
        """No address that a client could be sent to."""
        return self.host in _EVERY_INTERFACE


def parse_listener(text: str, config_name: str = "listeners") -> Listener:
    """One `NAME://host:port`; names are upper case, an IPv6 host is in brackets."""
    name, separator, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    well_formed = separator and colon and name and (bracketed or ":" not in host)
    if not well_formed or not (port.isascii() and port.isdecimal()):
        raise InvalidConfig(
            f"{config_name}: {text!r} is not a listener; write it as PLAINTEXT://host:port"
        )
    if int(port) > _PORT_MAX:
        raise InvalidConfig(f"{config_name}: port {port} of {text!r} is above {_PORT_MAX}")
    return Listener(name.upper(), host[1:-1] if bracketed else host, int(port))


def parse_listeners(
    texts: Iterable[str], config_name: str = "listeners", *, distinct_ports: bool = True
) -> tuple[Listener, ...]:
    """All listeners of a property, refused together when two share a name or a port.

    One port may serve an IPv4 and an IPv6 address; port 0 is a different port each time.
    """
    listeners = tuple(parse_listener(text, config_name) for text in texts)
    names: set[str] = set()
    ports: set[tuple[int, bool]] = set()
    for listener in listeners:
        if listener.name in names:
            raise InvalidConfig(f"{config_name} names {listener.name} more than once")
        names.add(listener.name)
        port = (listener.port, ":" in listener.host)
        if distinct_ports and listener.port and port in ports:
            raise InvalidConfig(f"{config_name} uses port {listener.port} more than once")
        ports.add(port)
    return listeners


def parse_protocol_map(text: str) -> dict[str, str]:
    """Listener name to security protocol, from `NAME:PROTOCOL,NAME:PROTOCOL`."""
    protocols: dict[str, str] = {}
    for pair in text.split(","):
        name, _, protocol = pair.strip().partition(":")
        if not pair.strip():
            continue
        if protocol.strip().upper() not in PROTOCOLS:
            raise InvalidConfig(
                f"listener.security.protocol.map: {pair.strip()!r} must be a listener name, a "
                f"colon and one of {', '.join(PROTOCOLS)}"
            )
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def check_protocols(listeners: Iterable[Listener], protocols: Mapping[str, str]) -> None:
    """Every listener must have a protocol."""
    for listener in listeners:
        if listener.name not in protocols:
            raise InvalidConfig(
                f"listeners: {listener} has no security protocol; add {listener.name}:PLAINTEXT "
                f"or {listener.name}:SSL to listener.security.protocol.map"
            )
