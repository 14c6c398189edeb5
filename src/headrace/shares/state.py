"""The state of a share partition, and its key: group and partition."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from headrace.protocol.uuids import Uuid, to_text

UNINITIALIZED = -1
"""The start offset of a share partition that has no first offset yet."""

UNKNOWN_COUNT = -1
"""The count of completed deliveries from a writer without that field."""


class SharePartitionKey(NamedTuple):
    """A partition as one share group sees it."""

    group_id: str
    topic_id: Uuid
    partition: int


class StateBatch(NamedTuple):
    """Consecutive offsets with one delivery state and count."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class SharePartitionState(msgspec.Struct, frozen=True):
    """The persisted state of a share partition; offsets below the start are settled."""

    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = UNINITIALIZED
    delivery_complete_count: int = UNKNOWN_COUNT
    batches: tuple[StateBatch, ...] = ()


class StateChange(msgspec.Struct, frozen=True):
    """The changes of a share partition's leader, with its epochs."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch] = ()


def coordinator_key(key: SharePartitionKey) -> str:
    """The coordinator key for FindCoordinator and for the partition of the state topic."""
    return f"{key.group_id}:{to_text(key.topic_id)}:{key.partition}"
