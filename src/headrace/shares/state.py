"""The words of share state: which partition of which group, and how far its delivery has got."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from headrace.protocol.uuids import Uuid, to_text

UNINITIALIZED = -1
"""The start offset of a share partition whose first offset is still to be chosen."""

UNKNOWN_COUNT = -1
"""The count of completed deliveries where a writer was too old to give one."""


class SharePartitionKey(NamedTuple):
    """A partition as one share group sees it."""

    group_id: str
    topic_id: Uuid
    partition: int


class StateBatch(NamedTuple):
    """Offsets in a row that share a delivery state and a delivery count."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class SharePartitionState(msgspec.Struct, frozen=True):
    """All that outlives a leader of a share partition; offsets below the start are done with."""

    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = UNINITIALIZED
    delivery_complete_count: int = UNKNOWN_COUNT
    batches: tuple[StateBatch, ...] = ()


class StateChange(msgspec.Struct, frozen=True):
    """What the leader of a share partition adds to its state, and under which epochs."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch] = ()


def coordinator_key(key: SharePartitionKey) -> str:
    """The name by which FindCoordinator and the partitions of the state topic know it."""
    return f"{key.group_id}:{to_text(key.topic_id)}:{key.partition}"
