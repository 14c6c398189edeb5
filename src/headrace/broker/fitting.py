"""Large batches that a topic looks into or rewrites: in a thread, so that nobody else waits.

Checking the keys of a compacted topic, or giving a batch another codec, takes milliseconds for
a batch of a thousand records and seconds for the worst that fits into one. Only the fitting is done
aside; sequence numbers are checked and offsets given on the loop, when it is done. The order that a
producer relies on is that of its connection, which serves nothing else meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from headrace.errors import KafkaError
from headrace.storage.validation import CheckedBatch, check_for

if TYPE_CHECKING:
    from headrace.storage.config import LogConfig

_AT_ONCE = 2
"""Fewer than there are threads: syncs must not queue up behind batches."""


class Fitting:
    """Fits batches to their topics, a few at a time; those who wait are bounded by connections."""

    def __init__(self, background: Callable[..., Awaitable[CheckedBatch]]) -> None:
        self._background = background
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def fit(
        self, records: memoryview, config: "LogConfig", now_ms: int
    ) -> CheckedBatch | KafkaError:
        """The batch as the topic stores it, or why it does not."""
        async with self._turns:
            try:
                return await self._background(check_for, records, config, now_ms)
            except KafkaError as error:
                return error
