"""One decoded Produce request: its batches are appended one by one, then all are answered."""

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from headrace.broker.produce.admission import Admission, is_transactional, topics_by_key
from headrace.broker.produce.answers import Done, Failures, write_with_failures
from headrace.broker.produce.shapes import ALL
from headrace.broker.topics.topology import leader_nodes
from headrace.errors import (
    InvalidRecord,
    InvalidRequiredAcks,
    KafkaError,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnsupportedCompressionType,
)
from headrace.protocol.batches import ATTRIBUTES_POSITION, CODEC_MASK, HEADER_SIZE
from headrace.protocol.compression import Codec
from headrace.protocol.hot_produce import (
    TOPIC_IDS_FROM,
    ZSTD_FROM,
    Appended,
    ProduceView,
    TopicKey,
    write_success,
)
from headrace.security.principals import ANONYMOUS, Caller
from headrace.storage.validation import CheckedBatch, is_heavy

if TYPE_CHECKING:
    from collections.abc import Collection

    from headrace.broker.direct_call import DirectCall
    from headrace.broker.flushing import Lost
    from headrace.replication.partition import HostedTopic, Partition
    from headrace.storage.log import Log

_CODEC_POSITION = ATTRIBUTES_POSITION + 1


class ProduceRequest:
    """Appends the batches of a request, heavy ones last, and answers it."""

    __slots__ = (
        "_admission",
        "_broker",
        "_call",
        "_forbidden",
        "_hosted",
        "_now_ms",
        "_request",
        "_waits_left",
        "done",
        "failures",
        "heavy",
        "uncommitted",
        "unflushed",
    )

    def __init__(
        self,
        call: "DirectCall",
        request: ProduceView,
        admission: Admission,
        forbidden: "Collection[TopicKey]" = (),
    ) -> None:
        self._call = call
        self._forbidden = forbidden
        self._broker = call.broker
        self._request = request
        self._admission = admission
        self._hosted = topics_by_key(call.broker, call.version)
        self._now_ms = call.broker.clock.now_ms()
        self.done: Done = []
        self.failures: Failures = {}
        self.unflushed: list[Log] = []
        self.uncommitted: list[_Uncommitted] = []
        self._waits_left = 0
        self.heavy: list[Heavy] = []

    # --- the batches ----------------------------------------------------------------------------

    def append_all(self) -> None:
        """Append every batch but the heavy ones, which are copied out of the frame."""
        refused = self._admission.refused
        for key, record_sets in self._request.topics:
            topic = self._hosted.get(key)
            appended: list[Appended] = []
            self.done.append((key, appended))
            for index, records in record_sets:
                try:
                    if self._forbidden and key in self._forbidden:
                        raise TopicAuthorizationFailed("the client may not write to the topic")
                    if topic is None:
                        raise _unknown(key, self._call.version)
                    if refused and (key, index) in refused:
                        raise refused[key, index]
                    appended.append(self._append(key, topic, index, records))
                except KafkaError as error:
                    self._refuse(key, index, records, error)
                except _TooHeavy:
                    assert topic is not None, "it was found heavy by its topic's config"
                    copy = memoryview(bytearray(records or b""))
                    self.heavy.append(Heavy(key, topic, index, copy, appended))

    def refuse_all(self, error: KafkaError) -> None:
        for key, record_sets in self._request.topics:
            self.done.append((key, []))
            for index, records in record_sets:
                self._refuse(key, index, records, error)

    async def append_heavy(self) -> None:
        """Validate the heavy batches in a thread, then append them like any other."""
        for key, topic, index, records, appended in self.heavy:
            try:
                config = topic.led(index).online_log().config
                if config.record_rules:
                    await self._broker.registered_schemas.catch_up()
                checked = await self._broker.heavy_validation.validate(
                    records, config, self._now_ms
                )
                if isinstance(checked, KafkaError):
                    raise checked
                appended.append(self._append(key, topic, index, records, checked))
            except KafkaError as error:
                self._refuse(key, index, records, error)

    def _append(
        self,
        key: TopicKey,
        topic: "HostedTopic",
        index: int,
        records: memoryview | None,
        checked: CheckedBatch | None = None,
    ) -> Appended:
        if records is None:
            raise InvalidRecord("a produced partition needs a record batch")
        if self._call.version < ZSTD_FROM and _is_zstd(records):
            raise UnsupportedCompressionType(f"zstd needs Produce v{ZSTD_FROM}; update the client")
        partition = topic.led(index)
        log = partition.log or partition.online_log()
        if (
            checked is None
            and not log.usual_limits.size_bytes_max
            and (is_heavy(records) or self._must_catch_up(log))
        ):
            raise _TooHeavy
        if waits := self._request.acks == ALL and partition.in_sync is not None:
            partition.check_min_isr()
        info = partition.append(records, self._now_ms, self._admission.transaction_version, checked)
        if log.unflushed_messages >= log.config.flush_messages:
            self.unflushed.append(log)
        if waits:  # A duplicate waits like the batch that it repeats.
            self.uncommitted.append(_Uncommitted(key, partition, info.last_offset + 1))
        topic.metrics.count_produced(1, len(records), info.last_offset - info.base_offset + 1)
        return Appended(index, info.base_offset, info.log_append_time, info.log_start_offset)

    def _must_catch_up(self, log: "Log") -> bool:
        """Return whether newer registered schemas must be read before records are validated."""
        return bool(log.config.record_rules) and not self._broker.registered_schemas.is_current

    def _refuse(
        self, key: TopicKey, index: int, records: memoryview | None, error: KafkaError
    ) -> None:
        self.failures[key, index] = error
        self._call.count_error(error.code)
        topic = self._hosted.get(key)
        if topic is None:
            self._broker.metrics.failed_produce_requests += 1
        else:
            topic.metrics.count_failed_produce(len(records or b""))

    # --- the answer -----------------------------------------------------------------------------

    def answer(self) -> None:
        """Answer, after a sync if a log requires one, and after the replicas if acks=all does.

        acks=0 gets no answer: closing the connection is the only way to report an error.
        """
        call = self._call
        if self._request.acks == 0:
            if self.failures:
                call.connection.close()
            else:
                call.charge_unanswered_produce()
                call.answer()
        elif self.unflushed or self.uncommitted:
            self._wait()
        else:
            call.answer(self._encoded())

    def _wait(self) -> None:
        """Wait for the sync and for the replicas of each partition, all at the same time."""
        self._call.park()
        self._waits_left = len(self.uncommitted) + bool(self.unflushed)
        if self.unflushed:
            self._broker.flusher.flush(self.unflushed, self._flushed)
        for key, partition, end_offset in self.uncommitted:
            done = partial(self._committed, (key, partition.index))
            partition.when_committed(end_offset, self._request.timeout_ms, done)

    def _flushed(self, lost: "Lost") -> None:
        self._finish_one(self._places_in(lost))

    def _committed(self, place: tuple[TopicKey, int], error: KafkaError | None) -> None:
        self._finish_one({} if error is None else {place: error})

    def _finish_one(self, failures: Failures) -> None:
        try:
            for place, error in failures.items():
                self._call.count_error(error.code)
                self.failures[place] = error
            self._waits_left -= 1
            if not self._waits_left:
                self._call.answer(self._encoded())
        except Exception:  # Others wait for the same sync, or the same replicas.
            self._call.connection.fail()

    def _places_in(self, lost: "Lost") -> Failures:
        """Return the partitions of the request whose logs could not be synced."""
        places: Failures = {}
        if not lost:
            return places
        for key, record_sets in self._request.topics:
            topic = self._hosted.get(key)
            for index, _ in record_sets:
                if topic is None or not 0 <= index < len(topic.partitions):
                    continue
                partition = topic.partitions[index]
                if partition is not None and partition.log is not None and partition.log in lost:
                    places[key, index] = lost[partition.log]
        return places

    def _encoded(self) -> bytes | bytearray:
        call, failures = self._call, self.failures
        throttle_ms = call.charge_produce()
        if not failures:
            return write_success(call.version, call.correlation_id, self.done, throttle_ms)
        nodes = leader_nodes(self._broker.image, call.connection.listener, failures.values())
        return write_with_failures(
            call.version,
            call.correlation_id,
            self._request.topics,
            self.done,
            failures,
            nodes,
            throttle_ms,
        )

    # --- the shape ------------------------------------------------------------------------------

    def learn_shape(self, frame: memoryview) -> None:
        """Remember the shape of a request that succeeded, if the next one may equal it.

        A client with a quota is served without shapes, so that each of its requests is counted.
        Clients that are logged in have shapes of their own: others may have no quota.
        """
        if self._call.meter is not None:
            return
        topics = self._request.topics
        is_repeatable = self._request.acks and not self.failures and not self.unflushed
        if not is_repeatable or len(topics) != 1 or len(topics[0][1]) != 1:
            return
        (key, ((index, _),)) = topics[0]
        call, partition = self._call, self._hosted[key].led(index)
        client = call.connection
        is_anybody = self._broker.authorizer is None and client.principal is ANONYMOUS
        caller = None if is_anybody else Caller(client.principal, client.host)
        call.connection.produce_shape = self._broker.produce_shapes.learn(
            frame, call.version, self._request, partition, caller
        )


class Heavy(NamedTuple):
    """A batch that waits for its validation, copied out of its frame, and the list of outcomes."""

    key: TopicKey
    topic: "HostedTopic"
    partition: int
    records: memoryview
    appended: list[Appended]


class _Uncommitted(NamedTuple):
    """An appended batch whose answer waits for the replicas of its partition."""

    key: TopicKey
    partition: "Partition"
    end_offset: int


class _TooHeavy(Exception):
    """A batch that its topic must read, and that is too large to be read on the loop."""


def check_request(request: ProduceView) -> None:
    """Raise the error that refuses all batches of a request, if there is one."""
    if request.acks not in (1, -1, 0):
        raise InvalidRequiredAcks(f"acks must be 0, 1 or -1 (all), not {request.acks}")
    if request.transactional_id is None and any(
        is_transactional(records) for _, record_sets in request.topics for _, records in record_sets
    ):
        raise TransactionalIdAuthorizationFailed(
            "records of a transaction need a transactional id in the request"
        )


def _is_zstd(records: memoryview) -> bool:
    return len(records) >= HEADER_SIZE and records[_CODEC_POSITION] & CODEC_MASK == Codec.ZSTD


def _unknown(key: TopicKey, version: int) -> KafkaError:
    if version >= TOPIC_IDS_FROM:
        return UnknownTopicId("no topic has this id; refresh the client's metadata")
    name = key.decode(errors="replace")
    return UnknownTopicOrPartition(f"there is no topic {name}")
