"""The persister of share partitions: the door from their leaders to the share coordinator.

Every operation is a coroutine that does not wait while this node leads the partition of
`__share_group_state` in question and is its only replica: call it through `finish_now`
(`runtime/eager.py`) and it costs no task. A coordinator that is not ready yet is asked again, a
few times; any other refusal is raised as the coordinator's KafkaError.

Only this module knows where the coordinator is; with several nodes it becomes the client of the
five ShareGroupState APIs and nothing else changes.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    NotCoordinator,
)
from headrace.shares.state import SharePartitionKey, SharePartitionState, StateBatch

if TYPE_CHECKING:
    from headrace.broker.node import Broker

T = TypeVar("T")

_NOT_READY = (CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator)
_ATTEMPTS = 6
_BACKOFF_S = 0.1


class ShareStates:
    """Read and write of share partitions' state, as `broker.share_states`."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        """Begin a share partition's state, or begin it anew under a higher state epoch."""
        shares = self._broker.shares
        await self._ask(lambda: shares.initialize(key, state_epoch, start_offset))

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> SharePartitionState:
        """The state for a new leader, which locks leaders of earlier epochs out."""
        shares = self._broker.shares
        return await self._ask(lambda: shares.read(key, leader_epoch))

    async def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        """Add what has changed.

        Of two batches that speak of one offset that with the higher delivery count is believed,
        and with equal counts that with the higher delivery state, whichever came first.
        """
        shares = self._broker.shares
        await self._ask(
            lambda: shares.write(
                key, state_epoch, leader_epoch, start_offset, delivery_complete_count, batches
            )
        )

    async def summary(self, key: SharePartitionKey) -> SharePartitionState:
        """Where delivery stands, for those who only look; the start is -1 if nobody began."""
        shares = self._broker.shares
        return await self._ask(lambda: shares.summary(key))

    async def delete(self, key: SharePartitionKey) -> None:
        """Forget a share partition."""
        shares = self._broker.shares
        await self._ask(lambda: shares.delete(key))

    async def _ask(self, operation: Callable[[], Coroutine[Any, Any, T]]) -> T:
        coordinator = self._broker.shares.coordinator
        if not coordinator.exists:
            await coordinator.ensure_topic()
        for attempt in range(_ATTEMPTS - 1):
            try:
                return await operation()
            except _NOT_READY:
                await asyncio.sleep(_BACKOFF_S * 2**attempt)
        return await operation()
