"""The committed offsets of a shard, including commits of open transactions."""

from collections.abc import Iterator

from headrace.groups.offset_records import CommittedOffset, OffsetKey

ByTopic = dict[str, dict[int, CommittedOffset]]


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
        """Return whether an open transaction may still change this offset."""
        return bool(self.pending) and any(key in commits for commits in self.pending.values())

    def has_pending(self, group_id: str) -> bool:
        return any(key.group_id == group_id for commits in self.pending.values() for key in commits)

    def put(self, key: OffsetKey, committed: CommittedOffset, producer_id: int) -> None:
        """Apply a commit, plain or in a transaction."""
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
            commits.pop(key, None)  # A transaction's end must not restore deleted offsets.
        by_topic = self.by_group.get(key.group_id)
        if by_topic is None or key.topic not in by_topic:
            return
        by_topic[key.topic].pop(key.partition, None)
        if not by_topic[key.topic]:
            del by_topic[key.topic]
        if not by_topic:
            del self.by_group[key.group_id]
