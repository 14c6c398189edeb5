"""Write to `_schemas`, fenced against a former leader that still considers itself the leader.

All instances share a transactional id. A new leader claims it, which gives its producer a higher
epoch, and writes an empty record with that epoch. From then on the partition itself refuses every
batch of an earlier epoch. Records are not transactional: a batch is written whole or not at all,
every reader sees it at once, and none is ever aborted (decision 21).

Every call blocks, so callers use a thread.
"""

import logging
import time
from collections.abc import Sequence

from headrace import errors
from headrace.client.admin import Admin
from headrace.client.connection import ConnectionLost
from headrace.client.properties import Properties
from headrace.protocol.batches import Record, build_batch
from headrace.protocol.schemas.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
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
"""A claim is renewed long before Kafka expires unused transactional ids, after seven days."""

_TRANSACTION_TIMEOUT_MS = 60_000  # Required by Kafka, but no transaction ever begins.
_PAUSE_S = 0.05
_PAUSE_MAX_S = 0.5
_FENCED = (errors.ProducerFenced, errors.InvalidProducerEpoch)
_ALL_REPLICAS = -1


class Fenced(errors.HeadraceError):
    """Another instance has claimed the topic since."""


class InDoubt(errors.HeadraceError):
    """No answer arrived in time: the records may or may not be written."""


class TooLarge(errors.HeadraceError):
    """The broker rejects records of this size; nothing was written."""


class LogWriter:
    """The only producer of an instance; it writes nothing without a claim."""

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
        """The offset of the last record written by this instance."""

    @property
    def has_claim(self) -> bool:
        """True until a write fails or is in doubt, or the claim expires."""
        return self._claimed_at is not None and time.monotonic() < self._claimed_at + CLAIM_S_MAX

    def claim(self) -> int:
        """Fence earlier writers; return the offset up to which they may have written."""
        self._claimed_at = None
        request = InitProducerIdRequest(
            transactional_id=self._transactional_id, transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS
        )

        def attempt() -> InitProducerIdResponse:
            node = self._admin.transactions.coordinator_of(self._transactional_id)
            answer = self._admin.cluster.ask(request, InitProducerIdResponse, node)
            if answer.error_code:
                raise errors.error_for(answer.error_code, "InitProducerId")
            return answer

        granted = self._admin.cluster.retry(attempt)
        self._producer_id, self._epoch = granted.producer_id, granted.producer_epoch
        self._sequence = 0
        self._claimed_at = time.monotonic()
        offset = self.write([Change(NoopKey())])
        _log.info("topic claimed", extra={"topic": self._topic, "epoch": self._epoch})
        return offset

    def give_up(self) -> None:
        """Forget the claim; the next write needs a new one."""
        self._claimed_at = None

    def write(self, changes: Sequence[Change]) -> int:
        """Append all changes as one batch; return the offset of the last one."""
        batch = self._batch(changes)
        request = ProduceRequest(acks=_ALL_REPLICAS, timeout_ms=int(self._timeout_s * 1000))
        try:
            offset = self._produced(request, bytes(batch))
        except _FENCED as error:
            self._claimed_at = None
            raise Fenced(f"another instance writes to {self._topic} now: {error}") from error
        except (errors.MessageTooLarge, errors.RecordListTooLarge) as error:
            raise TooLarge(f"{self._topic} rejects a record of {len(batch):,} bytes") from error
        except errors.HeadraceError as error:
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
        """Retry until the time is up; the sequence number prevents duplicates."""
        deadline = time.monotonic() + self._timeout_s
        pause_s = _PAUSE_S
        while True:
            try:
                return self._produce_once(request, batch)
            except (errors.KafkaError, ConnectionLost) as error:
                is_passing = isinstance(
                    error, ConnectionLost | errors.FencedLeaderEpoch
                ) or getattr(error, "retriable", False)
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
        if found.error_code and found.error_code != errors.DuplicateSequenceNumber.code:
            raise errors.error_for(found.error_code, found.error_message or "")
        return found.base_offset
