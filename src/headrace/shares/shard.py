"""One partition of `__share_group_state` as state: the share coordinator (KIP-932).

The state of a share partition is its last snapshot and the updates after it; a new snapshot
follows a number of updates. Records before the oldest of all last snapshots are redundant, and the
shell deletes them from time to time.

Two epochs fence late writers. The leader epoch rises when a new leader of the partition reads the
state: the previous leader must not write any more. The state epoch rises when the state is
initialized again: late writes of the old state are rejected.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import TYPE_CHECKING

import msgspec

from headrace.coordination.effects import Effects, RecordFacts, Ticket, TimerKey
from headrace.errors import (
    FencedLeaderEpoch,
    FencedStateEpoch,
    InvalidRequest,
    UnknownTopicOrPartition,
)
from headrace.protocol.coordinator_records import (
    CoordinatorRecord,
    RecordTypes,
    decode_key,
    decode_value,
    record_types,
)
from headrace.protocol.schemas.records import shares as schemas
from headrace.protocol.uuids import Uuid
from headrace.shares import records
from headrace.shares.batches import combine
from headrace.shares.runs import RecordState
from headrace.shares.state import (
    UNINITIALIZED,
    UNKNOWN_COUNT,
    SharePartitionKey,
    SharePartitionState,
    StateBatch,
    StateChange,
)

if TYPE_CHECKING:
    from headrace.metadata.image import MetadataImage
    from headrace.settings.broker import BrokerSettings

TYPES: RecordTypes = record_types(schemas)

_STATES = frozenset(RecordState)
ANY_EPOCH = -1
"""The epoch of a caller that does not have one; it is not compared."""

_COLD: TimerKey = ("cold",)
_RECORDS_MAX = 500  # In one batch, which is also one turn of the event loop.
_NOT_THERE = SharePartitionState(start_offset=UNINITIALIZED, delivery_complete_count=UNKNOWN_COUNT)


class Held(msgspec.Struct, frozen=True):
    """A share partition's state, and the offsets of its records."""

    state: SharePartitionState
    snapshot_epoch: int = 0
    created_ms: int = 0
    written_ms: int = 0
    snapshot_offset: int = -1
    updates: int = 0  # Since the last snapshot.
    leader_epoch_seen: int = -1  # The highest; a new state starts over.

    @property
    def is_cold(self) -> bool:
        """Return whether the last snapshot was a rewrite of an idle state."""
        return self.created_ms != self.written_ms


class _Update(CoordinatorRecord):
    """An update to be written, with the resulting state."""

    of: SharePartitionKey
    after: Held


class ShareShard:
    """The share partitions with states in one partition of the topic."""

    def __init__(
        self,
        settings: "Callable[[], BrokerSettings]",
        image: "Callable[[], MetadataImage]",
    ) -> None:
        self._settings = settings
        self._image = image
        self.held: dict[SharePartitionKey, Held] = {}
        self.next_offset = 0

    # --- decisions --------------------------------------------------------------------------------

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, now_ms: int
    ) -> Effects[SharePartitionState]:
        """Initialize a state, or reset it: no record is delivered or in flight."""
        held = self.held.get(key)
        _check_key(key)
        if held is not None:
            _check_state_epoch(held, state_epoch)
        self._check_exists(key)
        known = start_offset != UNINITIALIZED
        state = SharePartitionState(
            state_epoch=state_epoch,
            leader_epoch=0,
            start_offset=start_offset,
            delivery_complete_count=0 if known else UNKNOWN_COUNT,
        )
        snapshot_epoch = 0 if held is None else held.snapshot_epoch + 1
        return self._snapshot(key, state, snapshot_epoch, now_ms)

    def read(
        self, key: SharePartitionKey, leader_epoch: int, now_ms: int
    ) -> Effects[SharePartitionState]:
        """Return the state to a leader; a read with a higher epoch fences the previous leader."""
        _check_key(key)
        held = self._known(key, "Read")
        _check_leader_epoch(held, leader_epoch)
        self._check_exists(key)
        state = held.state
        if leader_epoch in (ANY_EPOCH, held.leader_epoch_seen):
            return Effects(state)
        raised = msgspec.structs.replace(state, leader_epoch=leader_epoch)
        return self._write(key, held, raised, (), now_ms)

    def write(
        self, key: SharePartitionKey, change: StateChange, now_ms: int
    ) -> Effects[SharePartitionState]:
        """Apply a leader's changes.

        A leader's writes may arrive out of order, and a late write has an earlier start: done
        records stay done. Only `initialize` moves the start back.
        """
        _check_key(key)
        held = self._known(key, "Write")
        _check_leader_epoch(held, change.leader_epoch)
        _check_state_epoch(held, change.state_epoch)
        self._check_exists(key)
        _check_batches(change.batches)
        known = held.state
        start = max(known.start_offset, change.start_offset)
        state = SharePartitionState(
            state_epoch=known.state_epoch,
            leader_epoch=known.leader_epoch,
            start_offset=start,
            delivery_complete_count=change.delivery_complete_count,
            batches=combine(known.batches, change.batches, start),
        )
        return self._write(key, held, state, change.batches, now_ms)

    def summary(self, key: SharePartitionKey) -> Effects[SharePartitionState]:
        """The state without its batches; an uninitialized state has no start offset."""
        _check_key(key)
        self._check_exists(key)
        held = self.held.get(key)
        return Effects(_NOT_THERE if held is None else held.state)

    def delete(self, key: SharePartitionKey) -> Effects[SharePartitionState]:
        """Delete a state, if it exists."""
        _check_key(key)
        self._check_exists(key)
        if key not in self.held:
            return Effects(_NOT_THERE)
        return Effects(_NOT_THERE, [records.tombstone(key)])

    def on_topics_deleted(self, topic_ids: Set[Uuid]) -> Iterator[Effects[None]]:
        """Delete the states of deleted topics."""
        gone = [records.tombstone(key) for key in self.held if key.topic_id in topic_ids]
        for start in range(0, len(gone), _RECORDS_MAX):
            yield Effects(records=gone[start : start + _RECORDS_MAX])

    @property
    def redundant_before(self) -> int:
        """The offset below which all records are redundant."""
        return min((one.snapshot_offset for one in self.held.values()), default=self.next_offset)

    def _known(self, key: SharePartitionKey, verb: str) -> Held:
        held = self.held.get(key)
        if held is None:
            raise InvalidRequest(f"{verb} operation on uninitialized share partition not allowed.")
        return held

    def _check_exists(self, key: SharePartitionKey) -> None:
        topic = self._image().topics_by_id.get(key.topic_id)
        if topic is None or key.partition >= len(topic.partitions):
            raise UnknownTopicOrPartition("This server does not host this topic-partition.")

    def _write(
        self,
        key: SharePartitionKey,
        held: Held,
        state: SharePartitionState,
        batches: Sequence[StateBatch],
        now_ms: int,
    ) -> Effects[SharePartitionState]:
        """An update, or a snapshot if there were enough of them."""
        if held.updates >= self._settings().share_coordinator_snapshot_update_records_per_snapshot:
            return self._snapshot(key, state, held.snapshot_epoch + 1, now_ms)
        own = combine((), batches, state.start_offset)
        record = _Update(*records.update(key, held.snapshot_epoch, state, own))
        record.of = key
        record.after = msgspec.structs.replace(
            held,
            state=state,
            updates=held.updates + 1,
            leader_epoch_seen=max(held.leader_epoch_seen, state.leader_epoch),
        )
        return Effects(state, [record])

    def _snapshot(
        self, key: SharePartitionKey, state: SharePartitionState, snapshot_epoch: int, now_ms: int
    ) -> Effects[SharePartitionState]:
        return Effects(state, [records.snapshot(key, snapshot_epoch, state, now_ms, now_ms)])

    # --- the methods for the shell (coordination.effects.ShardState) ------------------------------

    def replay(self, record: CoordinatorRecord, facts: RecordFacts) -> None:
        """Apply a record; an update of this node is applied without decoding its record."""
        self.next_offset = facts.offset + 1
        if isinstance(record, _Update):
            self.held[record.of] = record.after
            return
        key = decode_key(TYPES, record.key)
        if not isinstance(key, schemas.ShareSnapshotKey | schemas.ShareUpdateKey):
            return
        named = SharePartitionKey(key.group_id, key.topic_id, key.partition)
        if record.value is None:
            self.held.pop(named, None)
        else:
            held = self.held.get(named)
            value = decode_value(TYPES, key, record.value)
            self.held[named] = _replayed(held, value, facts.offset)

    def end_transaction(self, producer_id: int, producer_epoch: int, *, committed: bool) -> None:
        """Do nothing: no transaction writes to this topic."""

    def on_loaded(self, now_ms: int) -> Effects[None]:
        return Effects(timers={_COLD: self._cold_interval_ms})

    def on_timer(self, key: TimerKey, now_ms: int) -> Effects[None]:
        """Rewrite states that have not been written for long.

        Their last snapshots are far back in the log and prevent the deletion of all later records.
        """
        interval_ms = self._cold_interval_ms
        if all(one.is_cold and not one.updates for one in self.held.values()):
            return Effects(timers={_COLD: interval_ms})
        due = [
            records.snapshot(
                name, held.snapshot_epoch + 1, held.state, held.created_ms, max(now_ms, 1)
            )
            for name, held in self.held.items()
            if now_ms - held.written_ms >= interval_ms
        ]
        is_rest_due = len(due) > _RECORDS_MAX
        return Effects(
            records=due[:_RECORDS_MAX], timers={_COLD: 0 if is_rest_due else interval_ms}
        )

    def tickets(self) -> list[Ticket]:
        return []

    @property
    def _cold_interval_ms(self) -> int:
        return self._settings().share_coordinator_cold_partition_snapshot_interval_ms


def _replayed(held: Held | None, value: object, offset: int) -> Held:
    """The state after a record."""
    seen = -1 if held is None else held.leader_epoch_seen
    if isinstance(value, schemas.ShareSnapshotValue):
        return Held(
            state=records.state_of(value),
            snapshot_epoch=value.snapshot_epoch,
            created_ms=value.create_timestamp,
            written_ms=value.write_timestamp,
            snapshot_offset=offset,
            leader_epoch_seen=max(seen, value.leader_epoch),
        )
    assert isinstance(value, schemas.ShareUpdateValue)
    before = held or Held(SharePartitionState(), value.snapshot_epoch, snapshot_offset=offset)
    return msgspec.structs.replace(
        before,
        state=_updated(before.state, value),
        updates=before.updates + 1,
        leader_epoch_seen=max(seen, value.leader_epoch),
    )


def _updated(known: SharePartitionState, value: schemas.ShareUpdateValue) -> SharePartitionState:
    start = max(known.start_offset, value.start_offset)
    is_told = value.leader_epoch != ANY_EPOCH
    return SharePartitionState(
        state_epoch=known.state_epoch,
        leader_epoch=value.leader_epoch if is_told else known.leader_epoch,
        start_offset=start,
        delivery_complete_count=value.delivery_complete_count,
        batches=combine(known.batches, records.batches_of(value), start),
    )


def _check_key(key: SharePartitionKey) -> None:
    if key.partition < 0:
        raise InvalidRequest("The partition id cannot be a negative number.")


def _check_batches(batches: Iterable[StateBatch]) -> None:
    """Reject delivery states that no leader could read later."""
    for batch in batches:
        if batch.delivery_state not in _STATES or batch.last_offset < batch.first_offset:
            raise InvalidRequest(
                f"offsets {batch.first_offset} to {batch.last_offset} cannot have the delivery "
                f"state {batch.delivery_state}"
            )


def _check_leader_epoch(held: Held, epoch: int) -> None:
    if epoch != ANY_EPOCH and epoch < held.leader_epoch_seen:
        raise FencedLeaderEpoch(
            f"The leader epoch {epoch} is smaller than the last known, {held.leader_epoch_seen}."
        )


def _check_state_epoch(held: Held, epoch: int) -> None:
    if epoch != ANY_EPOCH and epoch < held.state.state_epoch:
        raise FencedStateEpoch(
            f"The state epoch {epoch} is smaller than the last known, {held.state.state_epoch}."
        )
