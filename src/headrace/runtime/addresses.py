"""Network addresses: their text, and the ports of a node."""

import socket
from functools import lru_cache

from headrace.errors import CannotListen


def address_text(host: str, port: int) -> str:
    """Return `host:port`; IPv6 hosts are in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def bound_socket(host: str, port: int) -> tuple[socket.socket, int]:
    """Claim a port of the `listeners` without serving it yet; port 0 takes any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise CannotListen(f"{host}:{port}", error, config_name="listeners") from error
    sock.setblocking(False)
    return sock, int(sock.getsockname()[1])


@lru_cache(maxsize=4096)
def plain_host(host: str) -> str:
    """Return an address in one form.

    Tools write IPv6 addresses in several forms, and a socket of both families names the clients of
    IPv4 by addresses of IPv6.
    """
    if ":" not in host:
        return host
    from ipaddress import IPv6Address, ip_address  # Most nodes meet addresses of IPv4 only.

    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address)
