"""Requests to partition leaders: offsets, producers, batches, deletion of records."""

from collections.abc import Mapping, Sequence

from headrace.client.cluster import Cluster, results
from headrace.client.descriptions import ActiveProducer, PartitionOffset
from headrace.errors import KafkaError, OffsetOutOfRange, error_for
from headrace.protocol.schemas.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from headrace.protocol.schemas.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    TopicRequest,
)
from headrace.protocol.schemas.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from headrace.protocol.schemas.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3

HIGH_WATERMARK = -1
"""In `delete_records_before`: all records."""

_ORDINARY_CLIENT = -1
_BATCH_SIZE_MAX = 64 << 20


class Partitions:
    """The partitions of a cluster's topics, reached through their leaders."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def of(self, topic: str) -> list[int]:
        """List the partitions of a topic."""
        return sorted(part.partition_index for part in self._cluster.topic(topic).partitions)

    def offsets(
        self, topic: str, timestamp: int, partitions: Sequence[int] | None = None
    ) -> list[PartitionOffset]:
        """Read the first offset at or after a time, or LATEST, EARLIEST or MAX_TIMESTAMP."""
        wanted = self.of(topic) if partitions is None else partitions

        def ask(
            leader: int, share: Mapping[int, int]
        ) -> dict[int, ListOffsetsPartitionResponse | KafkaError]:
            places = {(topic, index): at for index, at in share.items()}
            found = leader_offsets(self._cluster, leader, places)
            return {index: one for (_, index), one in found.items()}

        found = self._cluster.ask_leaders(topic, dict.fromkeys(wanted, timestamp), ask)
        return [
            PartitionOffset(
                partition=index,
                offset=part.offset,
                timestamp=part.timestamp,
                leader_epoch=part.leader_epoch,
            )
            for index, part in found.items()
        ]

    def delete_records_before(self, topic: str, offsets: Mapping[int, int]) -> dict[int, int]:
        """Delete records below an offset in each partition; return the new first offsets."""

        def ask(
            leader: int, share: Mapping[int, int]
        ) -> dict[int, DeleteRecordsPartitionResult | KafkaError]:
            partitions = [
                DeleteRecordsPartition(partition_index=index, offset=offset)
                for index, offset in share.items()
            ]
            request = DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name=topic, partitions=partitions)],
                timeout_ms=self._cluster.timeout_ms,
            )
            answer = self._cluster.ask(request, DeleteRecordsResponse, leader)
            return results(answer.topics[0].partitions)

        try:
            found = self._cluster.ask_leaders(topic, offsets, ask)
            return {index: part.low_watermark for index, part in found.items()}
        except OffsetOutOfRange as error:
            raise self._absent(topic, offsets) from error

    def producers(
        self, topic: str, partitions: Sequence[int] | None = None
    ) -> list[ActiveProducer]:
        """List the producers that partitions remember."""
        wanted = self.of(topic) if partitions is None else partitions

        def ask(
            leader: int, share: Mapping[int, None]
        ) -> dict[int, PartitionResponse | KafkaError]:
            request = DescribeProducersRequest(
                topics=[TopicRequest(name=topic, partition_indexes=list(share))]
            )
            answer = self._cluster.ask(request, DescribeProducersResponse, leader)
            return results(answer.topics[0].partitions)

        found = self._cluster.ask_leaders(topic, dict.fromkeys(wanted), ask)
        return [producer for part in found.values() for producer in _producers(part)]

    def batch_at(self, topic: str, partition: int, offset: int) -> bytes:
        """Read the batch at an offset, as the broker stores it."""
        try:
            found = self.batches_from(topic, partition, offset, bytes_max=1)
        except OffsetOutOfRange as error:
            raise self._absent(topic, {partition: offset}) from error
        if not found:
            raise self._absent(topic, {partition: offset})
        return found

    def batches_from(self, topic: str, partition: int, offset: int, *, bytes_max: int) -> bytes:
        """Read batches from an offset on, at least one; a brief wait may find none."""

        def ask(leader: int, share: Mapping[int, int]) -> dict[int, bytes | KafkaError]:
            wanted = FetchPartition(
                partition=partition,
                fetch_offset=share[partition],
                partition_max_bytes=_BATCH_SIZE_MAX,
            )
            # Newer brokers identify topics in a fetch by id, older ones by name.
            topic_id = self._cluster.topic(topic).topic_id
            request = FetchRequest(
                topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=[wanted])],
                max_wait_ms=500,
                min_bytes=1,
                max_bytes=bytes_max,
            )
            answer = self._cluster.ask(request, FetchResponse, leader)
            if answer.error_code:
                return {partition: error_for(answer.error_code)}
            part = answer.responses[0].partitions[0]
            return {
                partition: (
                    error_for(part.error_code) if part.error_code else bytes(part.records or b"")
                )
            }

        return self._cluster.ask_leaders(topic, {partition: offset}, ask)[partition]

    def _absent(self, topic: str, offsets: Mapping[int, int]) -> OffsetOutOfRange:
        """Return the error for missing offsets, with the existing range."""
        first = self.offsets(topic, EARLIEST, list(offsets))
        after = self.offsets(topic, LATEST, list(offsets))
        return OffsetOutOfRange(
            "; ".join(
                f"{topic}-{low.partition} {_held(low.offset, high.offset)},"
                f" not {offsets[low.partition]}"
                for low, high in zip(first, after, strict=True)
                if not low.offset <= offsets[low.partition] < high.offset
            )
        )


def _held(first: int, after: int) -> str:
    return f"holds offsets {first} to {after - 1}" if first < after else "holds no records"


def leader_offsets(
    cluster: Cluster,
    leader: int,
    timestamps: Mapping[tuple[str, int], int],
    isolation_level: int = 0,
) -> dict[tuple[str, int], ListOffsetsPartitionResponse | KafkaError]:
    """Read offsets of partitions with one leader, by topic and partition, in one request."""
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for (topic, index), timestamp in timestamps.items():
        asked = ListOffsetsPartition(partition_index=index, timestamp=timestamp)
        topics.setdefault(topic, []).append(asked)
    request = ListOffsetsRequest(
        replica_id=_ORDINARY_CLIENT,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name=name, partitions=parts) for name, parts in topics.items()],
        timeout_ms=cluster.timeout_ms,
    )
    return {
        (topic.name, part.partition_index): (
            error_for(part.error_code) if part.error_code else part
        )
        for topic in cluster.ask(request, ListOffsetsResponse, leader).topics
        for part in topic.partitions
    }


def _producers(part: PartitionResponse) -> list[ActiveProducer]:
    return [
        ActiveProducer(
            partition=part.partition_index,
            producer_id=state.producer_id,
            producer_epoch=state.producer_epoch,
            last_sequence=state.last_sequence,
            last_timestamp=state.last_timestamp,
            transaction_start_offset=(
                state.current_txn_start_offset if state.current_txn_start_offset >= 0 else None
            ),
        )
        for state in part.active_producers
    ]
