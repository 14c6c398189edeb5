"""Network addresses: their text, and the ports of a node."""

import socket

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
