"""The token topic: created if missing, read from its end, and appended to.

The last decision of an active writer is near the end of its partition, so reads go backwards in
growing steps, and mostly need one.
"""

import time
from collections.abc import Iterator, Mapping

import msgspec

from headrace.client.admin import Admin
from headrace.client.descriptions import NewTopic
from headrace.client.partitions import EARLIEST, LATEST
from headrace.errors import (
    HeadraceError,
    KafkaError,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
    error_for,
)
from headrace.protocol.batches import Record, build_batch, headers, read_header
from headrace.protocol.schemas.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headrace.spark.sink.errors import SinkError, WrongOption
from headrace.spark.sink.tokens import (
    PARTITIONS,
    Decision,
    Prepared,
    WriterHistory,
    decision_key,
    partition_of,
    transactional_id,
)

_CONFIGS = {
    "cleanup.policy": "compact",
    # The newest segment is never compacted, so small segments keep the topic small.
    "segment.bytes": str(4 << 20),
    "min.cleanable.dirty.ratio": "0.1",
}
_REPLICAS_MAX = 3
_WINDOW = 1_000
_WINDOW_GROWTH = 10
_FETCH_BYTES = 8 << 20
_ALL_IN_SYNC = -1
_SEQUENCE_MAX = 0x7FFFFFFF


class _ProduceRequest(ProduceRequest):
    """Limited to version 11: later ones imply newer transactions, which librdkafka lacks."""

    VERSIONS = range(3, 12)


class TokenLog:
    """Tokens and decisions of all writers."""

    def __init__(self, admin: Admin, topic: str) -> None:
        self.topic = topic
        self._admin = admin
        self._cluster = admin.cluster

    def ensure(self) -> None:
        """Create the topic if it is missing, and check its configuration."""
        found, _ = self._admin.topics.describe([self.topic])
        if not found:
            self._create()
            return
        if len(found[0].partitions) < PARTITIONS:
            raise WrongOption(
                f"the token topic {self.topic!r} has {len(found[0].partitions)} partitions and"
                f" needs {PARTITIONS}: let the sink create it, or name another by token.topic"
            )
        policy = next(
            entry.value
            for entry in self._admin.configs.describe("topic", self.topic)
            if entry.name == "cleanup.policy"
        )
        if policy != "compact":
            raise WrongOption(
                f"the token topic {self.topic!r} has cleanup.policy={policy} and must have compact:"
                " batches whose tokens are deleted would be written twice"
            )

    def decision(self, writer: str) -> Decision | None:
        """Return the newest decision of a writer."""
        partition = partition_of(writer)
        first, end = self._bounds(partition)
        width, start = _WINDOW, end
        while start > first:
            start = max(first, end - width)
            history = self._history(writer, start, end)
            if history.decision is not None:
                return history.decision
            width *= _WINDOW_GROWTH
        return None

    def history(self, writer: str) -> WriterHistory:
        """Return all that the topic has of a writer."""
        return self._history(writer, *self._bounds(partition_of(writer)))

    def append(self, writer: str, first: Prepared, decision: Decision) -> None:
        """Add a decision to a prepared transaction; repeating it is harmless.

        The broker recognises a repetition by the producer's sequence number.
        """
        record = Record(0, _now_ms(), decision_key(writer), msgspec.json.encode(decision))
        batch = build_batch(
            [record],
            producer_id=first.producer_id,
            producer_epoch=first.producer_epoch,
            base_sequence=first.sequence,
            transactional=True,
        )

        def ask(leader: int, share: Mapping[int, None]) -> dict[int, KafkaError | None]:
            (partition,) = share
            data = TopicProduceData(
                name=self.topic,
                topic_id=self._cluster.topic(self.topic).topic_id,
                partition_data=[PartitionProduceData(index=partition, records=bytes(batch))],
            )
            request = _ProduceRequest(
                transactional_id=transactional_id(writer, first.task),
                acks=_ALL_IN_SYNC,
                timeout_ms=int(self._cluster.timeout_s * 1000),
                topic_data=[data],
            )
            answer = self._cluster.ask(request, ProduceResponse, leader)
            (part,) = answer.responses[0].partition_responses
            return {partition: error_for(part.error_code) if part.error_code else None}

        self._cluster.ask_leaders(self.topic, {partition_of(writer): None}, ask)

    def prepared(self, task: int, partition: int, offset: int) -> Prepared:
        """Return the producer of the token at an offset, which librdkafka does not expose."""
        header = read_header(self._admin.partitions.batch_at(self.topic, partition, offset))
        return Prepared(
            task=task,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            sequence=(header.last_sequence + 1) & _SEQUENCE_MAX,
        )

    def _create(self) -> None:
        replicas = min(_REPLICAS_MAX, len(self._cluster.node_ids()))
        wanted = NewTopic(
            name=self.topic, partitions=PARTITIONS, replication_factor=replicas, configs=_CONFIGS
        )
        (created,) = self._admin.topics.create([wanted])
        if created.error not in (None, TopicAlreadyExists("").name):
            raise SinkError(
                f"the token topic {self.topic!r} cannot be created: {created.message}"
                f" ({created.error})"
            )
        self._cluster.retry(self._see_partitions)

    def _see_partitions(self) -> None:
        """Check that all partitions of a new topic have leaders, which takes a moment."""
        found, _ = self._admin.topics.describe([self.topic])
        if not found or any(part.leader is None for part in found[0].partitions):
            raise UnknownTopicOrPartition(f"the token topic {self.topic!r} is not ready yet")

    def _history(self, writer: str, start: int, stop: int) -> WriterHistory:
        history = WriterHistory(writer)
        for data in self._read(partition_of(writer), start, stop):
            history.fold(data)
        return history

    def _bounds(self, partition: int) -> tuple[int, int]:
        offsets = self._admin.partitions.offsets
        (first,) = offsets(self.topic, EARLIEST, [partition])
        (end,) = offsets(self.topic, LATEST, [partition])
        return first.offset, end.offset

    def _read(self, partition: int, start: int, stop: int) -> Iterator[bytes]:
        """Read the batches of a range of offsets, those of open transactions included."""
        read = self._admin.partitions.batches_from
        while start < stop:
            data = read(self.topic, partition, start, bytes_max=_FETCH_BYTES)
            after = max((header.next_offset for _, header in headers(data)), default=start)
            if after <= start:
                raise SinkError(
                    f"{self.topic}-{partition} returned no records at offset {start}, although it"
                    f" ends at {stop}; check its leader"
                )
            yield data
            start = after


def token_admin(properties: Mapping[str, str], timeout_s: float) -> Admin:
    """Open an admin client with the sink's properties."""
    try:
        return Admin(dict(properties), timeout_s=timeout_s)
    except HeadraceError as error:
        raise SinkError(f"guarantee=exactly-once cannot reach the token topic: {error}") from error


def _now_ms() -> int:
    return int(time.time() * 1000)
