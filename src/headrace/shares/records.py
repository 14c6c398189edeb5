"""The records of `__share_group_state`: snapshots of share partitions, and updates after them."""

from collections.abc import Sequence

from headrace.protocol.coordinator_records import CoordinatorRecord, encode_record
from headrace.protocol.schemas.records import shares as schemas
from headrace.shares.state import SharePartitionKey, SharePartitionState, StateBatch


def snapshot(
    key: SharePartitionKey,
    snapshot_epoch: int,
    state: SharePartitionState,
    created_ms: int,
    written_ms: int,
) -> CoordinatorRecord:
    """A record with the whole state, which supersedes earlier records."""
    value = schemas.ShareSnapshotValue(
        snapshot_epoch=snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=created_ms,
        write_timestamp=written_ms,
        state_batches=[schemas.ShareSnapshotValueStateBatch(*one) for one in state.batches],
    )
    return encode_record(schemas.ShareSnapshotKey(*key), value)


def update(
    key: SharePartitionKey,
    snapshot_epoch: int,
    state: SharePartitionState,
    batches: Sequence[StateBatch],
) -> CoordinatorRecord:
    """A record with the changes since the last record."""
    value = schemas.ShareUpdateValue(
        snapshot_epoch=snapshot_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        state_batches=[schemas.ShareUpdateValueStateBatch(*one) for one in batches],
    )
    return encode_record(schemas.ShareUpdateKey(*key), value)


def tombstone(key: SharePartitionKey) -> CoordinatorRecord:
    """A tombstone for the key of a state's snapshots."""
    return encode_record(schemas.ShareSnapshotKey(*key), None)


def state_of(value: schemas.ShareSnapshotValue) -> SharePartitionState:
    return SharePartitionState(
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        batches=batches_of(value),
    )


def batches_of(
    value: schemas.ShareSnapshotValue | schemas.ShareUpdateValue,
) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(one.first_offset, one.last_offset, one.delivery_state, one.delivery_count)
        for one in value.state_batches
    )
