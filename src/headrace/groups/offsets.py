"""The committed offsets of groups, including commits that wait for the end of a transaction.

The commit of a transaction takes effect when its marker is written; until then a consumer that
requires stable offsets must retry (UNSTABLE_OFFSET_COMMIT). Between a plain commit and a
transaction's commit, the later record in the log wins.
"""

from collections.abc import Collection, Iterable, Iterator
from functools import partial

from headrace.coordination.effects import Effects, Producer, RecordFacts
from headrace.errors import (
    GroupIdNotFound,
    GroupSubscribedToTopic,
    IllegalGeneration,
    OffsetMetadataTooLarge,
    StaleMemberEpoch,
    UnsupportedVersion,
)
from headrace.groups.committed_offsets import ByTopic, Offsets
from headrace.groups.group import Group, GroupType
from headrace.groups.offset_records import (
    NO_EXPIRY,
    CommittedOffset,
    OffsetKey,
    offset_record,
    offset_tombstone,
)
from headrace.groups.state import GroupsState
from headrace.protocol.coordinator_records import CoordinatorRecord
from headrace.protocol.uuids import Uuid

EXPIRY = ("expiry",)
"""The timer of the round that expires offsets and empty groups."""

RECORDS_PER_BATCH = 1000
"""The maximum number of offsets that expire in one batch, which has a maximum size."""

_CODES_CHANGED_FROM = 9  # Versions of OffsetCommit with the new group protocol.


# Committing.


Commit = tuple[str, Uuid, int, int, int, str | None]
"""One partition of a commit: topic, its id, partition, offset, leader epoch, metadata."""


def check_commit(
    shard: GroupsState,
    group_id: str,
    member_id: str,
    instance_id: str | None,
    epoch: int,
    *,
    version: int,
    is_transaction: bool = False,
) -> Group | None:
    """The group of a commit; None if the group does not exist yet.

    A client that manages its partitions itself commits without a generation, and its first commit
    creates its group.
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
    from headrace.groups.consumer.group import ConsumerGroup
    from headrace.groups.streams.group import StreamsGroup

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
    shard: GroupsState,
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
        else:  # The only version with an expiry time lacks all later fields.
            committed = CommittedOffset(offset, -1, metadata or "", now_ms, expire_ms)
        key = OffsetKey(group_id, topic, partition)
        records.append(offset_record(key, committed))
        taken.append((key, committed))
        codes.append(0)
    effects.apply_records = partial(apply_commits, shard, group_id, taken)
    return effects


# Deleting.


def delete(
    shard: GroupsState, group_id: str, partitions: Iterable[tuple[str, int]]
) -> Effects[list[int]]:
    """Delete offsets of partitions that the group does not read; a code for each."""
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


def delete_group(shard: GroupsState, group_id: str) -> Effects[None]:
    """Delete a group without members, with all its offsets."""
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
    shard: GroupsState, group_id: str, member_id: str | None, epoch: int
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


# Replay.


def apply_commits(
    shard: GroupsState,
    group_id: str,
    commits: Collection[tuple[OffsetKey, CommittedOffset]],
    facts: RecordFacts,
) -> None:
    """Apply a batch of commits of a group, the first at the offset in `facts`."""
    record_offset, producer_id = facts.offset, facts.producer_id
    put = shard.offsets.put
    for key, committed in commits:
        committed.record_offset = record_offset
        put(key, committed, producer_id)
        record_offset += 1
    if group_id not in shard.groups and commits:
        _add_simple_group(shard, group_id)
    if shard.is_loaded:
        shard.metrics.offset_commits += len(commits)


def _add_simple_group(shard: GroupsState, group_id: str) -> None:
    """Add the memberless group of a client that assigns its partitions itself."""
    from headrace.groups.classic.group import ClassicGroup

    shard.groups[group_id] = ClassicGroup(group_id)
