"""The administration of a cluster for asyncio: the same parts, every call in a thread.

`await admin.topics.create([...])` is `Admin(...).topics.create([...])`, whatever parts there are.
"""

from collections.abc import Awaitable, Callable
from functools import cached_property
from types import TracebackType
from typing import Any, Self

from headrace.client.admin import Admin
from headrace.client.async_thread import ClientThread
from headrace.client.properties import Properties


class AsyncAdmin:
    """`Admin` for asyncio; its calls follow each other."""

    def __init__(self, properties: Properties, timeout_s: float = 30.0) -> None:
        self._admin = Admin(properties, timeout_s=timeout_s)
        self._thread = ClientThread("headrace-admin")

    def __getattr__(self, part: str) -> "AsyncPart":
        if not isinstance(getattr(Admin, part, None), cached_property):
            raise AttributeError(f"Admin has no part {part!r}")
        return AsyncPart(self._thread, getattr(self._admin, part))

    async def close(self) -> None:
        await self._thread.run(self._admin.close)
        self._thread.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


class AsyncPart:
    """A part of `Admin` whose calls are awaited."""

    def __init__(self, thread: ClientThread, part: object) -> None:
        self._thread = thread
        self._part = part

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        call = getattr(self._part, name)

        def run(*args: Any, **kwargs: Any) -> Awaitable[Any]:
            return self._thread.start(call, *args, **kwargs)

        return run
