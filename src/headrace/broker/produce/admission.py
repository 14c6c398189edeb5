"""Admission of a transaction's batches: its coordinator must contain the partition (KIP-890).

A transaction that begins in a partition without its coordinator would never end there, and no
read_committed consumer would get past it. Clients up to Produce v11 add partitions to their
transaction beforehand, and the broker verifies it. From v12 on (transaction.version 2) the first
batch in a partition adds the partition.
"""

from typing import TYPE_CHECKING, NamedTuple

from headrace.broker.transactions import Verification
from headrace.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    InvalidProducerIdMapping,
    KafkaError,
    NetworkException,
    NotCoordinator,
    NotEnoughReplicas,
)
from headrace.protocol.batches import ATTRIBUTES_POSITION, HEADER, HEADER_SIZE, TRANSACTIONAL
from headrace.protocol.hot_produce import TOPIC_IDS_FROM, ProduceView, TopicKey
from headrace.storage.producer_state import EPOCH_BUMP_FROM, NOT_VERIFIED
from headrace.storage.topic_partition import TopicPartition
from headrace.transactions.coordinator import ProducerIdAndEpoch

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from headrace.broker.broker import Broker
    from headrace.replication.partition import HostedTopic
    from headrace.storage.log import Log

_ABORTABLE_FROM = 11
_ADD_FROM = 12
_PRODUCER_ID_FIELD = 9
_LOW_ATTRIBUTES_POSITION = ATTRIBUTES_POSITION + 1

NamedPartition = tuple[TopicKey, int]
"""A partition as the request names it."""


class Admission(NamedTuple):
    """The partitions that are refused, and the transaction version for the logs of the others."""

    refused: dict[NamedPartition, KafkaError]
    transaction_version: int


NO_TRANSACTION = Admission({}, NOT_VERIFIED)


async def admit(
    broker: "Broker", request: ProduceView, version: int, forbidden: "Collection[TopicKey]" = ()
) -> Admission:
    """Verify or add the partitions in which the transaction has not begun yet.

    Forbidden topics do not become part of the transaction.
    """
    verification = _verification(version)
    transaction_version = EPOCH_BUMP_FROM if verification is Verification.ADD else 0
    producer, named = _begun_by(broker, request, version, forbidden)
    if producer is None or not named:
        return Admission({}, transaction_version)
    assert request.transactional_id is not None
    refused = await broker.transactions.admit(
        request.transactional_id, producer, named.keys(), verification
    )
    return Admission(
        {
            named[partition]: _for_producers(error, verification)
            for partition, error in refused.items()
        },
        transaction_version,
    )


def is_transactional(records: memoryview | None) -> bool:
    return (
        records is not None
        and len(records) >= HEADER_SIZE
        and records[_LOW_ATTRIBUTES_POSITION] & TRANSACTIONAL != 0
    )


def begins_transaction(log: "Log", records: memoryview) -> bool:
    """Return whether a batch is its transaction's first in this log, so that it needs admission."""
    return not log.producers.is_in_transaction(*_sender(records))


def _sender(records: memoryview) -> ProducerIdAndEpoch:
    return ProducerIdAndEpoch(*HEADER.unpack_from(records)[_PRODUCER_ID_FIELD:][:2])


def topics_by_key(broker: "Broker", version: int) -> "Mapping[TopicKey, HostedTopic]":
    """Return the topics by the key that requests of a version use: id or name."""
    partitions = broker.partitions
    return partitions.by_id if version >= TOPIC_IDS_FROM else partitions.by_wire_name


def _begun_by(
    broker: "Broker", request: ProduceView, version: int, forbidden: "Collection[TopicKey]"
) -> "tuple[ProducerIdAndEpoch | None, dict[TopicPartition, NamedPartition]]":
    """Return the producer of the transaction, and the partitions in which it would begin."""
    hosted = topics_by_key(broker, version)
    producer = None
    named: dict[TopicPartition, NamedPartition] = {}
    for key, record_sets in request.topics:
        topic = None if key in forbidden else hosted.get(key)
        for index, records in record_sets:
            if topic is None or records is None or not is_transactional(records):
                continue
            sender = _sender(records)
            if sender.id < 0:
                continue  # Without a producer id the flag has no meaning, here as in Kafka.
            if producer not in (None, sender):
                raise InvalidProducerIdMapping("one request has the records of two producers")
            producer = sender
            if _begins(topic, index, sender):
                named[TopicPartition(topic.name, index)] = key, index
    return producer, named


def _begins(topic: "HostedTopic", index: int, producer: ProducerIdAndEpoch) -> bool:
    try:
        log = topic.led(index).online_log()
    except KafkaError:
        return False  # The append raises it again.
    return not log.producers.is_in_transaction(*producer)


def _verification(version: int) -> Verification:
    if version >= _ADD_FROM:
        return Verification.ADD
    return Verification.ABORTABLE if version >= _ABORTABLE_FROM else Verification.PLAIN


def _for_producers(error: KafkaError, verification: Verification) -> KafkaError:
    """Replace passing errors of the coordinator by one that producers retry here."""
    passing = (
        NetworkException,
        CoordinatorLoadInProgress,
        CoordinatorNotAvailable,
        NotCoordinator,
    )
    is_busy = isinstance(error, ConcurrentTransactions) and verification is not Verification.ADD
    if is_busy or isinstance(error, passing):
        return NotEnoughReplicas(f"the transaction cannot be verified at the moment: {error}")
    return error
