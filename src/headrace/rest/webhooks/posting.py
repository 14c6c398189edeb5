"""One delivery: a POST to a checked address, with a time limit.

Redirects are not followed, only the status of the answer is read, and the connection is closed
after it. Written on sockets, because the connection must use the address that was checked.
"""

import asyncio
import hashlib
import hmac
import socket
import ssl
from collections.abc import Mapping

from headrace.rest.webhooks.targets import AllowedTargets, Target

_HEAD_BYTES_MAX = 16_384
_INTERIM_MAX = 5


class DeliveryFailed(Exception):
    """A failed delivery; `is_final` if a retry would have the same result."""

    def __init__(self, reason: str, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.is_final = is_final


async def post(
    target: Target,
    headers: Mapping[str, str],
    body: bytes,
    allowed: AllowedTargets,
    timeout_s: float,
) -> None:
    """Deliver, or raise `DeliveryFailed`."""
    try:
        async with asyncio.timeout(timeout_s):
            status = await _posted(target, headers, body, allowed)
    except TimeoutError:
        raise DeliveryFailed(f"no answer within {timeout_s:g} seconds") from None
    except (OSError, ValueError, asyncio.IncompleteReadError) as error:
        raise DeliveryFailed(f"{type(error).__name__}: {error}"[:300]) from None
    if not 200 <= status < 300:
        raise DeliveryFailed(f"the target answered {status}", is_final=_is_final(status))


def signed(secret: str, timestamp_s: int, body: bytes) -> str:
    """Return the signature of a delivery and its time."""
    digest = hmac.new(secret.encode(), b"%d." % timestamp_s + body, hashlib.sha256)
    return f"sha256={digest.hexdigest()}"


def _is_final(status: int) -> bool:
    """Return whether a status is permanent; a busy or broken target may recover."""
    return 300 <= status < 500 and status not in (408, 425, 429)


async def _posted(
    target: Target, headers: Mapping[str, str], body: bytes, allowed: AllowedTargets
) -> int:
    allowed.check(target)
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    address = allowed.choose(target, [str(one[4][0]) for one in found])
    context = ssl.create_default_context() if target.is_secure else None
    reader, writer = await asyncio.open_connection(
        address,
        target.port,
        ssl=context,
        server_hostname=target.host if target.is_secure else None,
        limit=_HEAD_BYTES_MAX,
    )
    try:
        writer.write(_head(target, headers, len(body)) + body)
        await writer.drain()
        return await _status(reader)
    finally:
        writer.transport.abort()


def _head(target: Target, headers: Mapping[str, str], length: int) -> bytes:
    lines = [
        f"POST {target.path} HTTP/1.1",
        f"Host: {target.authority}",
        "Content-Type: application/json",
        f"Content-Length: {length}",
        "Connection: close",
        "User-Agent: headrace",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


async def _status(reader: asyncio.StreamReader) -> int:
    """Read the status of the answer, without interim ones (1xx)."""
    for _ in range(_INTERIM_MAX):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError as error:
            raise ValueError("the head of the answer is too long") from error
        line = head.partition(b"\r\n")[0].split(b" ", 2)
        if len(line) < 2 or not line[0].startswith(b"HTTP/1.") or not line[1].isdigit():
            raise ValueError("the answer is not HTTP")
        if int(line[1]) >= 200:
            return int(line[1])
    raise ValueError("the target sends interim answers only")
