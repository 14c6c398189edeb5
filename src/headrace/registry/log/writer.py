"""Writes to `_schemas`, so that a leader who was deposed and does not know it cannot.

All instances share a transactional id. Who takes office claims it, which gives its producer a
higher epoch, and writes an empty record with that epoch: from then on the partition itself refuses
every batch of an earlier epoch. Records are not transactional: a batch is written whole or not at
all, every reader sees it at once, and none is ever taken back (decision 21).

Every call waits; whoever calls has a thread for it.
"""

import logging
import time
from collections.abc import Sequence

from headrace.client.admin import Admin
from headrace.client.connection import ConnectionLost
from headrace.client.properties import Properties
from headrace.errors import (
    DuplicateSequenceNumber,
    FencedLeaderEpoch,
    HeadraceError,
    InvalidProducerEpoch,
    KafkaError,
    MessageTooLarge,
    ProducerFenced,
    RecordListTooLarge,
    error_for,
)
from headrace.protocol.batches import Record, build_batch
from headrace.protocol.schemas.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from headrace.protocol.schemas.metadata import MetadataResponseTopic
from headrace.protocol.schemas.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headrace.registry.model.records import Change, NoopKey
from headrace.registry.settings import RegistrySettings

_log = logging.getLogger(__name__)

CLAIM_S_MAX = 12 * 3600.0
"""A claim is renewed before Kafka forgets transactional ids that are not used, after seven days."""

_TRANSACTION_TIMEOUT_MS = 60_000  # No transaction is ever begun; Kafka wants a figure.
_PAUSE_S = 0.05
_PAUSE_MAX_S = 0.5
_FENCED = (ProducerFenced, InvalidProducerEpoch)
_ALL_REPLICAS = -1


class Deposed(HeadraceError):
    """Another instance has claimed the topic since."""


class InDoubt(HeadraceError):
    """No answer came in time: the records may be there or not."""


class TooLarge(HeadraceError):
    """The broker takes no record of this size; nothing was written."""


class LogWriter:
    """The one producer of an instance; without a claim it writes nothing."""

    def __init__(self, properties: Properties, settings: RegistrySettings) -> None:
        self._timeout_s = settings.kafkastore_timeout_ms / 1000
        self._admin = Admin(properties, timeout_s=self._timeout_s)
        self._topic = settings.kafkastore_topic
        self._transactional_id = f"{settings.schema_registry_group_id}-{settings.kafkastore_topic}"
        self._producer_id = -1
        self._epoch = -1
        self._sequence = 0
        self._claimed_at: float | None = None
        self._described: MetadataResponseTopic | None = None
        self.last_offset = -1
        """Where the last record is that was written here."""

    @property
    def has_claim(self) -> bool:
        """Whether writes may be tried; one that was left in doubt ends a claim."""
        return self._claimed_at is not None and time.monotonic() < self._claimed_at + CLAIM_S_MAX

    def claim(self) -> int:
        """Lock out whoever wrote before; the offset up to which others may have written."""
        self._claimed_at = None
        request = InitProducerIdRequest(
            transactional_id=self._transactional_id,
            transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS,
        )

        def attempt() -> InitProducerIdResponse:
            node = self._admin.transactions.coordinator_of(self._transactional_id)
            answer = self._admin.cluster.ask(request, InitProducerIdResponse, node)
            if answer.error_code:
                raise error_for(answer.error_code, "InitProducerId")
            return answer

        granted = self._admin.cluster.retry(attempt)
        self._producer_id, self._epoch = granted.producer_id, granted.producer_epoch
        self._sequence = 0
        self._claimed_at = time.monotonic()
        offset = self.write([Change(NoopKey())])
        _log.info("writing to %s as producer epoch %d", self._topic, self._epoch)
        return offset

    def give_up(self) -> None:
        """Forget the claim; the next write needs a new one."""
        self._claimed_at = None

    def write(self, changes: Sequence[Change]) -> int:
        """Append all changes as one batch; the offset of the last of them."""
        batch = self._batch(changes)
        request = ProduceRequest(acks=_ALL_REPLICAS, timeout_ms=int(self._timeout_s * 1000))
        try:
            offset = self._produced(request, bytes(batch))
        except _FENCED as error:
            self._claimed_at = None
            raise Deposed(f"another instance writes to {self._topic} now: {error}") from error
        except (MessageTooLarge, RecordListTooLarge) as error:
            raise TooLarge(f"{self._topic} takes no record of {len(batch):,} bytes") from error
        except HeadraceError as error:
            self._claimed_at = None
            raise InDoubt(f"{self._topic} was not written to in time: {error}") from error
        self._sequence += len(changes)
        self.last_offset = offset + len(changes) - 1
        return self.last_offset

    def close(self) -> None:
        self._admin.close()

    def _batch(self, changes: Sequence[Change]) -> bytearray:
        now_ms = time.time_ns() // 1_000_000
        records = [
            Record(number, now_ms, *change.encoded()) for number, change in enumerate(changes)
        ]
        return build_batch(
            records,
            leader_epoch=-1,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._sequence,
        )

    def _produced(self, request: ProduceRequest, batch: bytes) -> int:
        """Try until the time is up; by its sequence number a batch sent twice counts once."""
        deadline = time.monotonic() + self._timeout_s
        pause_s = _PAUSE_S
        while True:
            try:
                return self._produce_once(request, batch)
            except (KafkaError, ConnectionLost) as error:
                is_passing = isinstance(error, ConnectionLost | FencedLeaderEpoch) or getattr(
                    error, "retriable", False
                )
                self._described = None  # The partition may have another leader by now.
                if not is_passing or time.monotonic() + pause_s > deadline:
                    raise
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_MAX_S)

    def _produce_once(self, request: ProduceRequest, batch: bytes) -> int:
        topic = self._described = self._described or self._admin.cluster.topic(self._topic)
        partition = PartitionProduceData(index=0, records=batch)
        request.topic_data = [
            TopicProduceData(name=self._topic, topic_id=topic.topic_id, partition_data=[partition])
        ]
        leader = topic.partitions[0].leader_id
        answer = self._admin.cluster.ask(request, ProduceResponse, leader)
        found = answer.responses[0].partition_responses[0]
        if found.error_code and found.error_code != DuplicateSequenceNumber.code:
            raise error_for(found.error_code, found.error_message or "")
        return found.base_offset
