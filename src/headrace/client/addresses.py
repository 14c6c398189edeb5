"""Bootstrap addresses: parsing, and a first connection that fails early."""

import socket
import time
from collections.abc import Sequence
from typing import NamedTuple

from headrace.errors import HeadraceError
from headrace.runtime.addresses import address_text

DEFAULT_PORT = 9092


class BrokerUnreachable(HeadraceError):
    """No broker answers at the given addresses."""


class Address(NamedTuple):
    """Address of a broker."""

    host: str
    port: int

    def __str__(self) -> str:
        return address_text(self.host, self.port)


def parse_addresses(bootstrap: str) -> list[Address]:
    """Parse `host:port,host:port`; the port defaults to Kafka's, IPv6 hosts are in brackets."""
    addresses = [_parse_address(part.strip()) for part in bootstrap.split(",") if part.strip()]
    if not addresses:
        raise HeadraceError("no bootstrap server given; name one as host:port")
    return addresses


def connect_any(addresses: Sequence[Address], timeout_s: float) -> tuple[socket.socket, Address]:
    """Connect to the first address that accepts a connection."""
    deadline = time.monotonic() + timeout_s
    failure: OSError | None = None
    for address in addresses:
        left_s = max(0.1, deadline - time.monotonic())
        try:
            return connect(address, left_s), address
        except OSError as error:
            failure = error
    names = ", ".join(map(str, addresses))
    raise BrokerUnreachable(f"cannot reach {names}: {failure_text(failure)}")


def connect(address: Address, timeout_s: float) -> socket.socket:
    """Open a TCP connection that sends small requests at once."""
    opened = socket.create_connection(address, timeout=timeout_s)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def failure_text(error: OSError | None) -> str:
    """Describe a socket error in lower case, for use within a sentence."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if error is None or not error.strerror:
        return str(error or "nothing was tried")
    return error.strerror[0].lower() + error.strerror[1:]


def _parse_address(text: str) -> Address:
    host, separator, port = text.rpartition(":")
    if not separator or text.endswith("]") or (":" in host and not host.startswith("[")):
        host, port = text, str(DEFAULT_PORT)
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise HeadraceError(f"{text!r} is not an address; write it as host:port")
    return Address(host.strip("[]"), int(port))
