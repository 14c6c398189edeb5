"""Addresses of controllers: `id@host:port` of a static quorum, `host:port` to find a quorum."""

from collections.abc import Iterable
from typing import NamedTuple

from headrace.errors import InvalidConfig
from headrace.runtime.addresses import address_text

VOTERS = "controller.quorum.voters"
BOOTSTRAP_SERVERS = "controller.quorum.bootstrap.servers"

_PORT_MAX = 65535
_EVERY_INTERFACE = ("0.0.0.0", "::")


class ControllerAddress(NamedTuple):
    """The address of a controller; an IPv6 host is without brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return address_text(self.host, self.port)


def parse_voters(texts: Iterable[str]) -> dict[int, ControllerAddress]:
    """Return the voters of a static quorum by node id, in the order of the property."""
    voters: dict[int, ControllerAddress] = {}
    for text in texts:
        node_id, separator, address = text.partition("@")
        found = parse_address(address)
        if not separator or not (node_id.isascii() and node_id.isdecimal()) or found is None:
            raise InvalidConfig(f"{VOTERS}: {text!r} is not a voter; write it as 1@host:9093")
        if found.host in _EVERY_INTERFACE:
            raise InvalidConfig(
                f"{VOTERS}: other nodes cannot reach {text}; give a host name or address"
            )
        if int(node_id) in voters:
            raise InvalidConfig(f"{VOTERS} names node {int(node_id)} more than once")
        voters[int(node_id)] = found
    return voters


def parse_bootstrap_servers(texts: Iterable[str]) -> tuple[ControllerAddress, ...]:
    """Return the addresses by which a node finds the quorum."""
    found = []
    for text in texts:
        address = parse_address(text)
        if address is None:
            raise InvalidConfig(
                f"{BOOTSTRAP_SERVERS}: {text!r} is not an address; write it as host:9093"
            )
        found.append(address)
    return tuple(found)


def parse_address(text: str) -> ControllerAddress | None:
    """Return one `host:port`; None if it is malformed. An IPv6 host is in brackets."""
    host, _, port = text.strip().rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    if not host or (":" in host and not is_bracketed) or "@" in host:
        return None
    if not (port.isascii() and port.isdecimal() and 0 < int(port) <= _PORT_MAX):
        return None
    return ControllerAddress(host[1:-1] if is_bracketed else host, int(port))
