"""Reads all partitions of a topic from given offsets, and keeps progress under a group's name.

The group has no members: the partitions are assigned here, and the group is only where others
look how far the capture is.
"""

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, KafkaException, TopicPartition

from headrace.client.cluster import Cluster
from headrace.client.librdkafka import translated
from headrace.client.partitions import LATEST, Partitions
from headrace.client.reader import RecordReader
from headrace.protocol.uuids import Uuid


class PartitionReader(RecordReader):
    """Reads partitions each from an offset of its own, and commits offsets that it is told."""

    def __init__(
        self, bootstrap: str, topic: str, group: str, properties: Mapping[str, Any]
    ) -> None:
        committed_only = {"isolation.level": "read_committed"}
        super().__init__(bootstrap, topic, {**committed_only, **properties, "group.id": group})
        self.group = group
        self._properties = dict(properties)

    def topic_id(self) -> Uuid:
        """Which topic of this name it is now; librdkafka knows it and tells nobody."""
        with closing(Cluster(self._bootstrap, self._properties, self._timeout_s)) as cluster:
            return cluster.topic(self.topic).topic_id

    def committed(self, partitions: list[int]) -> dict[int, int]:
        """The group's offsets, of the partitions where there is one."""
        wanted = [TopicPartition(self.topic, partition) for partition in partitions]
        try:
            found = self._consumer.committed(wanted, timeout=self._timeout_s)
        except KafkaException as error:
            raise translated(error, self._bootstrap) from error
        return {one.partition: one.offset for one in found if one.offset >= 0}

    def begin(self, offsets: Mapping[int, int | None]) -> None:
        """Read these partitions from these offsets, and from the beginning where there is none."""
        starts = [
            TopicPartition(self.topic, partition, OFFSET_BEGINNING if offset is None else offset)
            for partition, offset in offsets.items()
        ]
        try:
            self._consumer.incremental_assign(starts)
        except KafkaException as error:
            raise translated(error, self._bootstrap) from error
        self._assigned |= frozenset(offsets)

    def first_offset(self, partition: int) -> int:
        """The first offset that the log still had when it was last read; -1 if not known."""
        wanted = TopicPartition(self.topic, partition)
        found = self._consumer.get_watermark_offsets(wanted, cached=True)
        return -1 if found is None else found[0]

    def high_watermark(self, partition: int) -> int:
        """Where the log ends; `bounds` end where the first open transaction begins."""
        with closing(Cluster(self._bootstrap, self._properties, self._timeout_s)) as cluster:
            return Partitions(cluster).offsets(self.topic, LATEST, [partition])[0].offset

    def commit_offsets(self, offsets: Mapping[int, int]) -> None:
        """Let others see how far this is."""
        wanted = [
            TopicPartition(self.topic, partition, offset) for partition, offset in offsets.items()
        ]
        try:
            self._consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException as error:
            raise translated(error, self._bootstrap) from error
