"""Allowed targets of webhooks, listed by the owner of the proxy.

The list has names (`hooks.example.com`, `*.example.com`), addresses and networks (`10.0.0.5:8080`,
`10.1.0.0/16`), each with an optional `:port`. A name is resolved for each delivery, and the
connection uses the address that was checked. Addresses of this machine and of private networks
require an entry with the address itself; a name alone does not allow them.
"""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

import msgspec

from headrace.errors import InvalidConfig
from headrace.rest.errors import RestError
from headrace.rest.numbers import whole

_URL_LENGTH_MAX = 2_000
_PORT_MAX = 65_535
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9]([A-Za-z0-9._-]{0,252}[A-Za-z0-9])?")
_PATH = re.compile(r"[!-~]*")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class TargetForbidden(RestError):
    """The target is not listed, or resolves to a forbidden address."""

    def __init__(self, reason: str) -> None:
        super().__init__(403, 40302, reason)


class Target(msgspec.Struct, frozen=True):
    """The parts of a URL to post to."""

    is_secure: bool
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = 443 if self.is_secure else 80
        return host if self.port == usual else f"{host}:{self.port}"


def parsed(url: str) -> Target:
    """Parse a URL; users, fragments and unescaped characters are errors."""
    if len(url) > _URL_LENGTH_MAX or not _PATH.fullmatch(url):
        raise _wrong(f"it must be printable ASCII of at most {_URL_LENGTH_MAX} characters")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _wrong(str(error)) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _wrong("it must begin with http:// or https:// and a host")
    if "@" in parts.netloc or parts.fragment:
        raise _wrong("a user or a fragment is not allowed")
    is_secure = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(is_secure, parts.hostname, port or (443 if is_secure else 80), path)


class _Entry(msgspec.Struct, frozen=True):
    """An entry of the list: a name or a network, and an optional port."""

    name: str | None
    network: Network | None
    port: int | None

    def fits_port(self, port: int) -> bool:
        return self.port in (None, port)

    def names(self, host: str) -> bool:
        if self.name is None:
            return False
        if self.name.startswith("*."):
            return host.endswith(self.name[1:])
        return host == self.name


class AllowedTargets:
    """The list of allowed targets."""

    def __init__(self, text: str) -> None:
        self._entries = [_entry(part.strip()) for part in text.split(",") if part.strip()]

    def __bool__(self) -> bool:
        return bool(self._entries)

    def check(self, target: Target) -> None:
        """Raise an error for a host that is not listed."""
        address = _address(target.host)
        if address is not None:
            if self._lists(address, target.port):
                return
        elif any(
            one.fits_port(target.port) and one.names(target.host.lower()) for one in self._entries
        ):
            return
        raise TargetForbidden(f"{target.host}:{target.port} is not listed in webhook.targets")

    def choose(self, target: Target, addresses: Iterable[str]) -> str:
        """Return an allowed address among those of a name."""
        found: Sequence[str] = list(addresses)
        for text in found:
            address = _address(text)
            if address is not None and (address.is_global or self._lists(address, target.port)):
                return text
        raise TargetForbidden(
            f"{target.host} resolves to {', '.join(found) or 'no address'}, which is not public;"
            " webhook.targets must list the address itself"
        )

    def _lists(self, address: Address, port: int) -> bool:
        return any(
            one.network is not None
            and one.fits_port(port)
            and address.version == one.network.version
            and address in one.network
            for one in self._entries
        )


def _entry(text: str) -> _Entry:
    host, port = _split(text)
    try:
        return _Entry(None, ipaddress.ip_network(host), port)
    except ValueError:
        pass
    if not _HOST.fullmatch(host):
        raise InvalidConfig(
            f"webhook.targets has {text!r}; write hosts as hooks.example.com or *.example.com,"
            " addresses as 10.0.0.5 or 10.1.0.0/16, each with an optional :port"
        )
    return _Entry(host.lower(), None, port)


def _split(text: str) -> tuple[str, int | None]:
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        text_port = rest.removeprefix(":")
    elif text.count(":") == 1:
        host, _, text_port = text.partition(":")
    else:
        host, text_port = text, ""
    if not text_port:
        return host, None
    port = whole(text_port, 1, _PORT_MAX)
    if port is None:
        raise InvalidConfig(f"webhook.targets has an invalid port {text_port!r} in {text!r}")
    return host, port


def _address(text: str) -> Address | None:
    """Parse an address; an IPv4 address mapped to IPv6 becomes IPv4."""
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(found, "ipv4_mapped", None)
    return mapped or found


def _wrong(reason: str) -> RestError:
    return RestError(422, 422, f"target is invalid: {reason}")
