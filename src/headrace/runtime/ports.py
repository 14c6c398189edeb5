"""Free TCP ports that stay free: below the ports that the kernel gives to outgoing connections.

While a server is down, a client that connects to its port must not get that same port as its own.
"""

import contextlib
import random
import socket
from collections.abc import Collection

from headrace.errors import HeadraceError

PORTS = range(15_000, 32_000)


def free_port(host: str, taken: Collection[int] = ()) -> int:
    """Return a port that no process uses at this moment and that is not in `taken`."""
    for port in random.sample(PORTS, 200):
        if port in taken:
            continue
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((host, port))
            return port
    raise HeadraceError(f"no port between {PORTS.start} and {PORTS.stop} is free")
