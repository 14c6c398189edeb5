"""Listen addresses: `host:port`."""

import ipaddress
from dataclasses import dataclass
from typing import Self

from headrace.errors import HeadraceError
from headrace.runtime.addresses import address_text

_PORT_MAX = 65535


class InvalidAddress(HeadraceError):
    """A text that is not a listen address."""


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """A host and a port; port 0 takes any free port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        host, separator, port = text.rpartition(":")
        is_bracketed = host.startswith("[") and host.endswith("]")
        if not separator or not host or (":" in host and not is_bracketed):
            raise InvalidAddress(f"{text!r} is not of the form HOST:PORT, such as 127.0.0.1:8090")
        if not (port.isascii() and port.isdecimal()) or int(port) > _PORT_MAX:
            raise InvalidAddress(f"port {port!r} of {text!r} is not between 0 and {_PORT_MAX}")
        return cls(host.strip("[]"), int(port))

    @property
    def is_loopback(self) -> bool:
        """True if only this machine can connect."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def url(self) -> str:
        return f"http://{self}"

    def __str__(self) -> str:
        return address_text(self.host, self.port)
