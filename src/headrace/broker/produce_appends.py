"""The batches of one Produce request on their way into the logs, and what became of each."""

from time import perf_counter_ns
from typing import TYPE_CHECKING, NamedTuple

from headrace.errors import (
    InvalidRecord,
    KafkaError,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnsupportedCompressionType,
)
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.batches import ATTRIBUTES_POSITION, CODEC_MASK, HEADER_SIZE
from headrace.protocol.compression import Codec
from headrace.protocol.hot_produce import TOPIC_IDS_FROM, ZSTD_FROM, Appended, TopicKey
from headrace.storage.validation import CheckedBatch, is_heavy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headrace.broker.node import Broker
    from headrace.broker.partitions import HostedTopic
    from headrace.broker.produce_admission import Admission
    from headrace.broker.produce_answers import Done, Failures, Topics
    from headrace.storage.log import Log

_CODEC_POSITION = ATTRIBUTES_POSITION + 1


class ProduceAppends:
    """Appends what can be appended at once, and what is too heavy for that afterwards."""

    __slots__ = (
        "_admission",
        "_broker",
        "_hosted",
        "_now_ms",
        "_version",
        "done",
        "failures",
        "heavy",
        "unflushed",
    )

    def __init__(self, broker: "Broker", version: int, admission: "Admission") -> None:
        self._broker = broker
        self._version = version
        self._admission = admission
        self._hosted = topics_by_key(broker, version)
        self._now_ms = broker.clock.now_ms()
        self.done: Done = []
        self.failures: Failures = {}
        self.unflushed: list[Log] = []
        self.heavy: list[Heavy] = []

    def append_all(self, topics: "Topics") -> None:
        """Append every batch but the heavy ones, which are copied out of the frame."""
        refused = self._admission.refused
        for key, record_sets in topics:
            topic = self._hosted.get(key)
            appended: list[Appended] = []
            self.done.append((key, appended))
            for index, records in record_sets:
                try:
                    if topic is None:
                        raise _unknown(key, self._version)
                    if refused and (key, index) in refused:
                        raise refused[key, index]
                    appended.append(self._append(topic, index, records))
                except KafkaError as error:
                    self._refuse(key, index, records, error)
                except _TooHeavy:
                    assert topic is not None, "it was found heavy by its topic's config"
                    copy = memoryview(bytearray(records or b""))
                    self.heavy.append(Heavy(key, topic, index, copy, appended))

    def refuse_all(self, topics: "Topics", error: KafkaError) -> None:
        for key, record_sets in topics:
            self.done.append((key, []))
            for index, records in record_sets:
                self._refuse(key, index, records, error)

    async def append_heavy(self) -> None:
        """Fit large batches to their topics in a thread, then append them as any other."""
        began_ns = perf_counter_ns()
        for key, topic, index, records, appended in self.heavy:
            try:
                config = topic.find(index).online_log().config
                if config.record_rules:
                    await self._broker.registered_schemas.catch_up()
                checked = await self._broker.fitting.fit(records, config, self._now_ms)
                if isinstance(checked, KafkaError):
                    raise checked
                appended.append(self._append(topic, index, records, checked))
            except KafkaError as error:
                self._refuse(key, index, records, error)
        if not self.unflushed:  # Otherwise it is counted when that is done.
            waited_ns = perf_counter_ns() - began_ns
            self._broker.metrics.requests.served_late(
                ApiKey.PRODUCE, self._version, waited_ns, waited_ns=waited_ns
            )

    def _append(
        self,
        topic: "HostedTopic",
        index: int,
        records: memoryview | None,
        checked: CheckedBatch | None = None,
    ) -> Appended:
        if records is None:
            raise InvalidRecord("a produced partition needs a record batch")
        if self._version < ZSTD_FROM and _is_zstd(records):
            raise UnsupportedCompressionType(f"zstd needs Produce v{ZSTD_FROM}; update the client")
        partition = topic.find(index)
        log = partition.log
        if (
            checked is None
            and log is not None
            and not log.usual_limits.size_bytes_max
            and (is_heavy(records) or self._must_catch_up(log))
        ):
            raise _TooHeavy
        info = partition.append(records, self._now_ms, self._admission.transaction_version, checked)
        if partition.waiters:
            self._broker.wake_ups.changed(partition)
        log = partition.log
        assert log is not None
        if log.unflushed_messages >= log.config.flush_messages:
            self.unflushed.append(log)
        metrics = topic.metrics
        metrics.produce_requests += 1
        metrics.bytes_in += len(records)
        metrics.messages_in += info.last_offset - info.base_offset + 1
        return Appended(index, info.base_offset, info.log_append_time, info.log_start_offset)

    def _must_catch_up(self, log: "Log") -> bool:
        """Whether a registry's topic has more to say before this log can judge its records."""
        return bool(log.config.record_rules) and not self._broker.registered_schemas.is_current

    def _refuse(
        self, key: TopicKey, index: int, records: memoryview | None, error: KafkaError
    ) -> None:
        self.failures[key, index] = error
        metrics = self._broker.metrics
        metrics.requests.failed(ApiKey.PRODUCE, error.code)
        topic = self._hosted.get(key)
        if topic is None:
            metrics.failed_produce_requests += 1
        else:
            topic.metrics.count_failed_produce(len(records or b""))


class Heavy(NamedTuple):
    """A batch that waits to be fitted, copied out of its frame, and where its outcome goes."""

    key: TopicKey
    topic: "HostedTopic"
    partition: int
    records: memoryview
    appended: list[Appended]


class _TooHeavy(Exception):
    """A batch that its topic must look into, and that is too large to do so on the loop."""


def topics_by_key(broker: "Broker", version: int) -> "Mapping[TopicKey, HostedTopic]":
    """The topics by what a request of a version names them."""
    partitions = broker.partitions
    return partitions.by_id if version >= TOPIC_IDS_FROM else partitions.by_wire_name


def _is_zstd(records: memoryview) -> bool:
    return len(records) >= HEADER_SIZE and records[_CODEC_POSITION] & CODEC_MASK == Codec.ZSTD


def _unknown(key: TopicKey, version: int) -> KafkaError:
    if version >= TOPIC_IDS_FROM:
        return UnknownTopicId("no topic has this id; refresh the client's metadata")
    name = key.decode(errors="replace")
    return UnknownTopicOrPartition(f"there is no topic {name}")
