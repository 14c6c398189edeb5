"""Heavy batches that a topic must read or rewrite: validated in a thread, a few at a time.

Checking the keys of a compacted topic, or compressing a batch with another codec, takes
milliseconds for a batch of a thousand records and seconds for the worst batch that a request can
contain. Only this validation runs in the thread; afterwards the loop checks sequence numbers and
assigns offsets. The order that a producer relies on is that of its connection, which serves nothing
else meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from headrace.errors import KafkaError
from headrace.storage.validation import CheckedBatch, check_for

if TYPE_CHECKING:
    from headrace.storage.config import LogConfig

_CONCURRENT_MAX = 2
"""Fewer than there are threads: syncs must not queue up behind batches."""


class HeavyValidation:
    """Validates heavy batches; each connection has at most one request here, which bounds them."""

    def __init__(self, background: Callable[..., Awaitable[CheckedBatch]]) -> None:
        self._background = background
        self._turns = asyncio.Semaphore(_CONCURRENT_MAX)

    async def validate(
        self, records: memoryview, config: "LogConfig", now_ms: int
    ) -> CheckedBatch | KafkaError:
        """Return the batch as the topic stores it, or the error for the client."""
        async with self._turns:
            try:
                return await self._background(check_for, records, config, now_ms)
            except KafkaError as error:
                return error
