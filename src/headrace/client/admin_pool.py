"""Admin clients for asyncio, each with a thread for its blocking calls.

A call that exceeds the time limit fails while its thread continues to the client's own limit. Until
then the client stays in use, so there are never more threads than clients.
"""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

from headrace.client.addresses import BrokerUnreachable
from headrace.client.admin import Admin
from headrace.client.async_thread import ClientThread
from headrace.client.properties import Properties
from headrace.errors import HeadraceError

T = TypeVar("T")

_WAITING_MAX = 200
_IDLE_S_MAX = 60.0


class AdminBusy(HeadraceError):
    """Too many calls wait for an admin client; retry later."""


class _Member:
    """An admin client and its thread."""

    def __init__(self, properties: Properties, timeout_s: float) -> None:
        self.admin = Admin(properties, timeout_s=timeout_s)
        self.thread = ClientThread("headrace-admin")
        self._used_at = time.monotonic()

    def call(self, function: Callable[[Admin], T]) -> T:
        """Call a function, with new connections if the old ones were idle for long.

        Brokers close idle connections, and a change must not be sent twice to detect that.
        """
        if time.monotonic() - self._used_at > _IDLE_S_MAX:
            self.admin.close()
        try:
            return function(self.admin)
        finally:
            self._used_at = time.monotonic()


class AdminPool:
    """Runs calls on up to `size` admin clients, in the order of the calls."""

    def __init__(
        self,
        properties: Properties,
        *,
        size: int,
        timeout_s: float,
        call_timeout_s: float | None = None,
    ) -> None:
        self._properties = properties
        self._timeout_s = timeout_s
        self._call_timeout_s = call_timeout_s
        self._members: list[_Member] = []
        self._free: list[_Member] = []
        self._slots = asyncio.Semaphore(size)
        self._waiting = 0

    async def run(self, function: Callable[[Admin], T]) -> T:
        """Return what a function returns for an admin client, within the time limit if any."""
        try:
            async with asyncio.timeout(self._call_timeout_s) as limit:
                member = await self._take()
                running = member.thread.start(member.call, function)
                running.add_done_callback(lambda _: self._give_back(member))
                # The caller may give up; the client is free only after its call.
                return await asyncio.shield(running)
        except TimeoutError as error:
            if limit.expired():
                raise BrokerUnreachable(
                    f"no answer within {self._call_timeout_s:g} seconds"
                ) from error
            raise

    async def close(self) -> None:
        for member in self._members:
            member.admin.close()
            member.thread.close()

    async def _take(self) -> _Member:
        if self._waiting >= _WAITING_MAX:
            raise AdminBusy("too many requests wait for the brokers; try again later")
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        if self._free:
            return self._free.pop()
        member = _Member(self._properties, self._timeout_s)
        self._members.append(member)
        return member

    def _give_back(self, member: _Member) -> None:
        self._free.append(member)
        self._slots.release()
