"""Reads all partitions of a topic from given offsets, and commits for a group.

The group has no members, because partitions are assigned here. Its offsets show the progress.
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
    """Reads partitions, each from its own offset, and commits given offsets."""

    def __init__(
        self, bootstrap: str, topic: str, group: str, properties: Mapping[str, Any]
    ) -> None:
        committed_only = {"isolation.level": "read_committed"}
        super().__init__(bootstrap, topic, {**committed_only, **properties, "group.id": group})
        self.group = group
        self._properties = dict(properties)

    def topic_id(self) -> Uuid:
        """Read the id of the topic, which librdkafka does not expose."""
        with closing(Cluster(self._bootstrap, self._properties, self._timeout_s)) as cluster:
            return cluster.topic(self.topic).topic_id

    def committed(self, partitions: list[int]) -> dict[int, int]:
        """Return the group's offsets of partitions with a commit."""
        wanted = [TopicPartition(self.topic, partition) for partition in partitions]
        try:
            found = self._consumer.committed(wanted, timeout=self._timeout_s)
        except KafkaException as error:
            raise translated(error, self._bootstrap) from error
        return {one.partition: one.offset for one in found if one.offset >= 0}

    def begin(self, offsets: Mapping[int, int | None]) -> None:
        """Start reading partitions at offsets, or at the beginning for None."""
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
        """Return the first offset of the log as of the last fetch; -1 if unknown."""
        wanted = TopicPartition(self.topic, partition)
        found = self._consumer.get_watermark_offsets(wanted, cached=True)
        return -1 if found is None else found[0]

    def high_watermark(self, partition: int) -> int:
        """Read the end of the log; `bounds` end at the first open transaction."""
        with closing(Cluster(self._bootstrap, self._properties, self._timeout_s)) as cluster:
            return Partitions(cluster).offsets(self.topic, LATEST, [partition])[0].offset

    def commit_offsets(self, offsets: Mapping[int, int]) -> None:
        """Commit offsets for the group."""
        wanted = [
            TopicPartition(self.topic, partition, offset) for partition, offset in offsets.items()
        ]
        try:
            self._consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException as error:
            raise translated(error, self._bootstrap) from error
