"""The persister of share partitions: the door from their leaders to the share coordinator.

Every operation is a coroutine that does not wait while this node leads the partition of
`__share_group_state` in question and is its only replica: call it through `finish_now`
(`runtime/eager.py`) and it costs no task. A coordinator that is not ready yet is asked again, a
few times; any other refusal is raised as the coordinator's KafkaError.

Only this module knows where the coordinator is; with several nodes it becomes the client of the
five ShareGroupState APIs and nothing else changes.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    NotCoordinator,
)
from headrace.shares.state import SharePartitionKey, SharePartitionState, StateChange

if TYPE_CHECKING:
    from headrace.broker.node import Broker

T = TypeVar("T")

_NOT_READY = (CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator)
_ATTEMPTS = 6
_BACKOFF_S = 0.1


class SharePersister:
    """Read and write of share partitions' state, as `broker.share_persister`."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        """Begin a share partition's state, or begin it anew under a higher state epoch."""
        coordinator = self._broker.share_coordinator
        await self._ask(lambda: coordinator.initialize(key, state_epoch, start_offset))

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> SharePartitionState:
        """The state for a new leader, which locks leaders of earlier epochs out."""
        coordinator = self._broker.share_coordinator
        return await self._ask(lambda: coordinator.read(key, leader_epoch))

    async def write(self, key: SharePartitionKey, change: StateChange) -> None:
        """Add what has changed.

        Of two batches that speak of one offset that with the higher delivery count is believed,
        and with equal counts that with the higher delivery state, whichever came first.
        """
        coordinator = self._broker.share_coordinator
        await self._ask(lambda: coordinator.write(key, change))

    async def summary(self, key: SharePartitionKey) -> SharePartitionState:
        """Where delivery stands, for those who only look; the start is -1 if nobody began."""
        coordinator = self._broker.share_coordinator
        return await self._ask(lambda: coordinator.summary(key))

    async def delete(self, key: SharePartitionKey) -> None:
        """Forget a share partition."""
        coordinator = self._broker.share_coordinator
        await self._ask(lambda: coordinator.delete(key))

    async def _ask(self, operation: Callable[[], Coroutine[Any, Any, T]]) -> T:
        coordinator = self._broker.share_coordinator.coordinator
        if not coordinator.exists:
            await coordinator.ensure_topic()
        for attempt in range(_ATTEMPTS - 1):
            try:
                return await operation()
            except _NOT_READY:
                await asyncio.sleep(_BACKOFF_S * 2**attempt)
        return await operation()
