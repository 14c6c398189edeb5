"""The persister of share partitions: the door from their leaders to the share coordinator.

Every operation is a coroutine that does not wait while this node leads the partition of
`__share_group_state` in question and is its only replica: call it through `finish_now`
(`runtime/eager.py`) and it costs no task. Refusals are raised as the coordinator's KafkaError.
Only this module knows where the coordinator is; with several nodes it becomes the client of the
five ShareGroupState APIs and nothing else changes.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.shares.state import SharePartitionKey, SharePartitionState, StateBatch

if TYPE_CHECKING:
    from headrace.broker.node import Broker


class ShareStates:
    """Read and write of share partitions' state, as `broker.share_states`."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        """Begin a share partition's state, or begin it anew under a higher state epoch."""
        raise NotImplementedError

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> SharePartitionState:
        """The state for a new leader, which locks leaders of earlier epochs out."""
        raise NotImplementedError

    async def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        """Add what has changed; batches replace what was known of their offsets."""
        raise NotImplementedError

    async def delete(self, key: SharePartitionKey) -> None:
        """Forget a share partition."""
        raise NotImplementedError
