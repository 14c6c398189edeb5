"""The head of an answer goes out with its body, in one piece.

uvicorn writes them one after the other, and the loop sends each at once: two system calls, and a
client that is woken by the head only to wait for the rest.
"""

import asyncio
from typing import cast

_JOINED_BYTES_MAX = 1 << 16
"""Larger bodies go by themselves: to copy them would cost more than it saves."""


def joined(transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> asyncio.Transport:
    """A transport for one answer."""
    return cast(asyncio.Transport, _JoinedWrites(transport, loop))


class _JoinedWrites:
    """Keeps back what is written first until something follows, or the loop's next round.

    It has what a cycle of uvicorn calls, and no more.
    """

    __slots__ = ("_head", "_later", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head: bytes | None = None
        self._later: asyncio.Handle | None = None

    def write(self, data: bytes) -> None:
        if self._later is None:
            self._head, self._later = data, self._loop.call_soon(self._flush)
        elif self._head is None or len(data) > _JOINED_BYTES_MAX:
            self._flush()
            self._transport.write(data)
        else:
            self._later.cancel()
            head, self._head = self._head, None
            self._transport.write(head + data)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head is not None:
            head, self._head = self._head, None
            if self._later is not None:
                self._later.cancel()
            if not self._transport.is_closing():
                self._transport.write(head)
