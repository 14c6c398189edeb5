"""The offsets that groups have committed, also those that wait for the end of a transaction.

The commit of a transaction counts from when its marker is written; until then a consumer that
asks for stable offsets is told to come back (UNSTABLE_OFFSET_COMMIT). Where a plain commit and
one of a transaction meet, the record that stands later in the log counts.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from headrace.coordination.effects import Effects, Producer
from headrace.errors import (
    GroupIdNotFound,
    GroupSubscribedToTopic,
    IllegalGeneration,
    OffsetMetadataTooLarge,
    StaleMemberEpoch,
    UnsupportedVersion,
)
from headrace.groups.group import Group, GroupType
from headrace.groups.offset_records import (
    NO_EXPIRY,
    CommittedOffset,
    OffsetKey,
    offset_record,
    offset_tombstone,
)
from headrace.protocol.coordinator_records import CoordinatorRecord
from headrace.protocol.uuids import Uuid

if TYPE_CHECKING:
    from headrace.groups.shard import GroupShard

EXPIRY = ("expiry",)
"""The timer of the round that forgets old offsets and empty groups."""

RECORDS_PER_BATCH = 1000
"""How many offsets are forgotten at once; a batch has a largest size."""

ByTopic = dict[str, dict[int, CommittedOffset]]

_CODES_CHANGED_FROM = 9  # Versions of OffsetCommit whose senders know the new group protocol.


class Offsets:
    """Every committed offset of a shard, by group, topic and partition."""

    def __init__(self) -> None:
        self.by_group: dict[str, ByTopic] = {}
        self.pending: dict[int, dict[OffsetKey, CommittedOffset]] = {}

    def __len__(self) -> int:
        return sum(
            len(by_partition)
            for by_topic in self.by_group.values()
            for by_partition in by_topic.values()
        )

    def of(self, group_id: str) -> ByTopic:
        return self.by_group.get(group_id, {})

    def find(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        by_topic = self.by_group.get(group_id)
        if by_topic is None:
            return None
        by_partition = by_topic.get(topic)
        return None if by_partition is None else by_partition.get(partition)

    def is_pending(self, key: OffsetKey) -> bool:
        """Whether an open transaction may still change this offset."""
        return bool(self.pending) and any(key in commits for commits in self.pending.values())

    def has_pending(self, group_id: str) -> bool:
        return any(key.group_id == group_id for commits in self.pending.values() for key in commits)

    def put(self, key: OffsetKey, committed: CommittedOffset, producer_id: int) -> None:
        """Take in what was committed, by itself or in a transaction."""
        if producer_id < 0:
            self._put(key, committed)
        else:
            self.pending.setdefault(producer_id, {})[key] = committed

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        for key, offset in self.pending.pop(producer_id, {}).items():
            known = self.find(*key)
            if committed and (known is None or known.record_offset < offset.record_offset):
                self._put(key, offset)

    def keys_of(self, group_id: str) -> Iterator[OffsetKey]:
        for topic, by_partition in self.of(group_id).items():
            for partition in by_partition:
                yield OffsetKey(group_id, topic, partition)

    def _put(self, key: OffsetKey, committed: CommittedOffset) -> None:
        group_id, topic, partition = key
        by_topic = self.by_group.get(group_id)
        if by_topic is None:
            by_topic = self.by_group[group_id] = {}
        by_partition = by_topic.get(topic)
        if by_partition is None:
            by_topic[topic] = {partition: committed}
        else:
            by_partition[partition] = committed

    def remove(self, key: OffsetKey, producer_id: int) -> None:
        if producer_id >= 0:
            self.pending.get(producer_id, {}).pop(key, None)
            return
        for commits in self.pending.values():
            commits.pop(key, None)  # What is deleted must not come back with a transaction's end.
        by_topic = self.by_group.get(key.group_id)
        if by_topic is None or key.topic not in by_topic:
            return
        by_topic[key.topic].pop(key.partition, None)
        if not by_topic[key.topic]:
            del by_topic[key.topic]
        if not by_topic:
            del self.by_group[key.group_id]


# Committing.


Commit = tuple[str, Uuid, int, int, int, str | None]
"""One partition of a commit: topic, its id, partition, offset, leader epoch, metadata."""


def check_commit(
    shard: "GroupShard",
    group_id: str,
    member_id: str,
    instance_id: str | None,
    epoch: int,
    *,
    version: int,
    is_transaction: bool = False,
) -> Group | None:
    """The group in whose name may be committed; None for one that is not there yet.

    A client that manages its partitions itself commits without a generation, and its group
    comes into being with its first offset.
    """
    group = shard.groups.get(group_id)
    if group is None:
        if epoch < 0:
            return None
        if version >= _CODES_CHANGED_FROM and not is_transaction:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        raise IllegalGeneration(f"there is no group {group_id}, and so no generation {epoch}")
    try:
        group.check_commit(member_id, instance_id, epoch, is_transaction=is_transaction)
    except StaleMemberEpoch as error:
        if version < _CODES_CHANGED_FROM and not is_transaction:
            raise UnsupportedVersion(str(error)) from error
        raise
    if version < _CODES_CHANGED_FROM and not is_transaction:
        _check_is_classic(group, member_id)
    return group


def _check_is_classic(group: Group, member_id: str) -> None:
    """Members of a newer protocol have epochs, which only newer versions have codes for."""
    if group.type is GroupType.CLASSIC:
        return
    from headrace.groups.consumer_group import ConsumerGroup
    from headrace.groups.streams_group import StreamsGroup

    if isinstance(group, ConsumerGroup):
        member = group.members.get(member_id)
        is_classic = member is None or member.speaks_classic
    else:
        is_classic = not (isinstance(group, StreamsGroup) and member_id in group.members)
    if not is_classic:
        raise UnsupportedVersion(
            f"members of the {group.type} protocol commit with "
            f"OffsetCommit v{_CODES_CHANGED_FROM} or newer"
        )


def commit(
    shard: "GroupShard",
    group_id: str,
    commits: Iterable[Commit],
    now_ms: int,
    *,
    retention_ms: int = -1,
    producer: Producer | None = None,
) -> Effects[list[int]]:
    """The records of commits that are allowed; the reply is an error code for each."""
    expire_ms = NO_EXPIRY if retention_ms == -1 else now_ms + retention_ms
    longest = shard.settings().offset_metadata_max_bytes
    effects: Effects[list[int]] = Effects(reply=[], producer=producer)
    codes, records = effects.reply, effects.records
    assert codes is not None
    taken: list[tuple[OffsetKey, CommittedOffset]] = []
    for topic, topic_id, partition, offset, leader_epoch, metadata in commits:
        if metadata and len(metadata) > longest:
            codes.append(OffsetMetadataTooLarge.code)
            continue
        if expire_ms == NO_EXPIRY:
            committed = CommittedOffset(
                offset, leader_epoch, metadata or "", now_ms, NO_EXPIRY, topic_id
            )
        else:  # The one version of the record with a time of expiry has nothing newer than it.
            committed = CommittedOffset(offset, -1, metadata or "", now_ms, expire_ms)
        key = OffsetKey(group_id, topic, partition)
        records.append(offset_record(key, committed))
        taken.append((key, committed))
        codes.append(0)
    effects.take_in = partial(shard.take_in_commits, group_id, taken)
    return effects


# Deleting.


def delete(
    shard: "GroupShard", group_id: str, partitions: Iterable[tuple[str, int]]
) -> Effects[list[int]]:
    """Forget the offsets of partitions that the group does not read; a code for each."""
    group = shard.find(group_id)
    group.check_offset_delete()
    codes: list[int] = []
    records: list[CoordinatorRecord] = []
    for topic, partition in partitions:
        if group.is_subscribed(topic):
            codes.append(GroupSubscribedToTopic.code)
            continue
        codes.append(0)
        key = OffsetKey(group_id, topic, partition)
        if shard.offsets.find(*key) is not None or shard.offsets.is_pending(key):
            records.append(offset_tombstone(key))
    return Effects(reply=codes, records=records)


def delete_group(shard: "GroupShard", group_id: str) -> Effects[None]:
    """Forget a group that has no members, with all its offsets."""
    group = shard.find(group_id)
    group.check_delete()
    pending = (key for commits in shard.offsets.pending.values() for key in commits)
    keys = (*shard.offsets.keys_of(group_id), *(key for key in pending if key.group_id == group_id))
    records = [offset_tombstone(key) for key in dict.fromkeys(keys)]
    return Effects(records=records + group.tombstones())


def forget_topics(offsets: Offsets, topics: set[str]) -> Iterator[Effects[None]]:
    """Tombstones for all that was ever committed for topics, also in open transactions."""
    keys = [
        key
        for group_id, by_topic in offsets.by_group.items()
        if not topics.isdisjoint(by_topic)
        for key in offsets.keys_of(group_id)
        if key.topic in topics
    ]
    pending = (key for commits in offsets.pending.values() for key in commits)
    found = list(dict.fromkeys((*keys, *(key for key in pending if key.topic in topics))))
    for start in range(0, len(found), RECORDS_PER_BATCH):
        some = found[start : start + RECORDS_PER_BATCH]
        yield Effects(records=[offset_tombstone(key) for key in some])


def offsets_to_fetch(
    shard: "GroupShard", group_id: str, member_id: str | None, epoch: int
) -> ByTopic:
    """All committed offsets of a group that may be fetched in this member's name."""
    group = shard.groups.get(group_id)
    if group is None:
        return {}
    try:
        group.check_fetch(member_id or "", epoch)
    except GroupIdNotFound:
        return {}
    return shard.offsets.of(group_id)
