"""Expiry of unused offsets, and of groups without content."""

from typing import TYPE_CHECKING

from headrace.coordination.effects import Effects
from headrace.groups.group import Group, GroupType
from headrace.groups.offset_records import NO_EXPIRY, CommittedOffset, OffsetKey, offset_tombstone
from headrace.groups.offsets import EXPIRY, RECORDS_PER_BATCH

if TYPE_CHECKING:
    from headrace.groups.state import GroupsState

_MINUTE_MS = 60_000
_SOON_MS = 10


def expire(shard: "GroupsState", now_ms: int) -> Effects[None]:
    """Expire offsets of a shard; the next round follows soon if many are left."""
    settings = shard.settings()
    retention_ms = settings.offsets_retention_minutes * _MINUTE_MS
    effects: Effects[None] = Effects()
    effects.timers[EXPIRY] = settings.offsets_retention_check_interval_ms
    for group in list(shard.groups.values()):
        room = RECORDS_PER_BATCH - len(effects.records)
        old = expired_offsets(shard, group, now_ms, retention_ms)[:room]
        effects.records.extend(offset_tombstone(key) for key in old)
        if has_nothing_left(shard, group, len(old)):
            effects.records.extend(group.tombstones())
        if len(effects.records) >= RECORDS_PER_BATCH:
            effects.timers[EXPIRY] = _SOON_MS
            break
    return effects


def expired_offsets(
    shard: "GroupsState", group: Group, now_ms: int, retention_ms: int
) -> list[OffsetKey]:
    group_id = group.group_id
    return [
        OffsetKey(group_id, topic, partition)
        for topic, by_partition in shard.offsets.of(group_id).items()
        if not group.is_subscribed(topic)
        for partition, committed in by_partition.items()
        if _is_old(group, committed, now_ms, retention_ms)
        and not shard.offsets.is_pending(OffsetKey(group_id, topic, partition))
    ]


def has_nothing_left(shard: "GroupsState", group: Group, expired: int) -> bool:
    """Return whether a group has neither members nor, after the expiry, offsets.

    A share group never expires: its offsets are with the share coordinator.
    """
    if group.state_name != "Empty" or group.type is GroupType.SHARE:
        return False
    if shard.offsets.has_pending(group.group_id):
        return False
    total = sum(map(len, shard.offsets.of(group.group_id).values()))
    return total == expired


def _is_old(group: Group, committed: CommittedOffset, now_ms: int, retention_ms: int) -> bool:
    if committed.expire_ms != NO_EXPIRY:
        return now_ms >= committed.expire_ms
    since_ms = group.offsets_expire_from(committed.commit_ms)
    return since_ms is not None and now_ms - since_ms >= retention_ms
