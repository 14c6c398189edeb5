"""A few admin clients with a thread each, so that a slow question holds up no other.

A question that takes too long is answered with an error while its thread goes on to the client's
own time limit; until then its client is not free. So threads are never more than clients.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from headrace.client.admin import Admin
from headrace.client.async_thread import ClientThread
from headrace.http.errors import Unavailable
from headrace.rest.errors import no_answer

T = TypeVar("T")

SIZE = 4
_WAITING_MAX = 200
_IDLE_S_MAX = 60.0


class _Member:
    """An admin client and the thread that it works in."""

    def __init__(self, properties: Mapping[str, str], timeout_s: float) -> None:
        self.admin = Admin(properties, timeout_s=timeout_s)
        self.thread = ClientThread("headrace-rest-admin")
        self._used_at = time.monotonic()

    def ask(self, question: Callable[[Admin], T]) -> T:
        """Brokers close connections that are idle, and a change is not sent twice to find that out.

        So connections that were idle for long are opened anew.
        """
        if time.monotonic() - self._used_at > _IDLE_S_MAX:
            self.admin.close()
        try:
            return question(self.admin)
        finally:
            self._used_at = time.monotonic()


class AdminPool:
    """Asks a cluster in one identity's name."""

    def __init__(self, properties: Mapping[str, str], timeout_s: float) -> None:
        self._properties = properties
        self._timeout_s = timeout_s
        self._members: list[_Member] = []
        self._free: asyncio.Queue[_Member] = asyncio.Queue()
        self._waiting = 0

    async def run(self, ask: Callable[[Admin], T]) -> T:
        """The answer to a question, within the time limit or with an error that says so."""
        try:
            async with asyncio.timeout(self._timeout_s) as limit:
                member = await self._take()
                return await self._asked(member, ask)
        except TimeoutError as error:
            if limit.expired():  # Else it is the client that has given up, and says why.
                raise no_answer(f"nothing came within {self._timeout_s:g} seconds") from error
            raise

    async def close(self) -> None:
        for member in self._members:
            member.admin.close()
            member.thread.close()

    async def _asked(self, member: _Member, ask: Callable[[Admin], T]) -> T:
        running = member.thread.start(member.ask, ask)
        # Whoever waits may give up; the client is free when its thread is.
        running.add_done_callback(lambda _: self._free.put_nowait(member))
        return await asyncio.shield(running)

    async def _take(self) -> _Member:
        if self._free.empty() and len(self._members) < SIZE:
            member = _Member(self._properties, self._timeout_s)
            self._members.append(member)
            return member
        if self._waiting >= _WAITING_MAX:
            raise Unavailable("too many questions wait for the brokers; try again later")
        self._waiting += 1
        try:
            return await self._free.get()
        finally:
            self._waiting -= 1
