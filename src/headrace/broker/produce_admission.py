"""May a Produce request write in its transaction? Its coordinator is asked where that is new.

A transaction that begins in a partition must be known to its coordinator, or nobody would ever end
it and no read_committed consumer would get past it (KIP-890). Clients up to Produce v11 have said
before where they will write, and are held to it. From v12 on (transaction.version 2) they have not:
the first batch in a partition makes it part of the transaction.
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
from headrace.protocol.batches import (
    ATTRIBUTES_POSITION,
    HEADER,
    HEADER_SIZE,
    TRANSACTIONAL,
)
from headrace.protocol.hot_produce import TOPIC_IDS_FROM, ProduceView, TopicKey
from headrace.storage.producer_state import EPOCH_BUMP_FROM
from headrace.transactions.coordinator import ProducerIdAndEpoch

if TYPE_CHECKING:
    from headrace.broker.node import Broker
    from headrace.broker.partitions import HostedTopic
    from headrace.storage.log import Log
    from headrace.transactions.transaction import TopicPartition

_ABORTABLE_FROM = 11
_ADD_FROM = 12
_PRODUCER_ID_FIELD = 9
_LOW_ATTRIBUTES_POSITION = ATTRIBUTES_POSITION + 1

Place = tuple[TopicKey, int]
"""A partition as the request names it."""


class Admission(NamedTuple):
    """Which partitions must not be written to, and what the others' log is told."""

    refused: dict[Place, KafkaError]
    transaction_version: int


async def admit(broker: "Broker", request: ProduceView, version: int) -> Admission:
    """Have the transaction's partitions verified, those that it has not begun in yet."""
    verification = _verification(version)
    transaction_version = EPOCH_BUMP_FROM if verification is Verification.ADD else 0
    producer, places = _begun_by(broker, request, version)
    if producer is None or not places:
        return Admission({}, transaction_version)
    assert request.transactional_id is not None
    refused = await broker.transactions.admit(
        request.transactional_id, producer, places.keys(), verification
    )
    return Admission(
        {places[place]: _as_told(error, verification) for place, error in refused.items()},
        transaction_version,
    )


def is_transactional(records: memoryview | None) -> bool:
    return (
        records is not None
        and len(records) >= HEADER_SIZE
        and records[_LOW_ATTRIBUTES_POSITION] & TRANSACTIONAL != 0
    )


def begins_transaction(log: "Log", records: memoryview) -> bool:
    """Whether a batch of a transaction is its producer's first here, so that somebody must ask."""
    return not log.producers.is_in_transaction(*_sender(records))


def _sender(records: memoryview) -> ProducerIdAndEpoch:
    return ProducerIdAndEpoch(*HEADER.unpack_from(records)[_PRODUCER_ID_FIELD:][:2])


def _begun_by(
    broker: "Broker", request: ProduceView, version: int
) -> "tuple[ProducerIdAndEpoch | None, dict[TopicPartition, Place]]":
    """Whose transaction it is, and the partitions in which it would begin."""
    partitions = broker.partitions
    hosted = partitions.by_id if version >= TOPIC_IDS_FROM else partitions.by_wire_name
    producer = None
    places: dict[TopicPartition, Place] = {}
    for key, record_sets in request.topics:
        topic = hosted.get(key)
        for index, records in record_sets:
            if topic is None or records is None or not is_transactional(records):
                continue
            sender = _sender(records)
            if sender.id < 0:
                continue  # Nobody's transaction: the flag has no meaning, here as in Kafka.
            if producer not in (None, sender):
                raise InvalidProducerIdMapping("one request has the records of two producers")
            producer = sender
            if _begins(topic, index, sender):
                places[topic.name, index] = key, index
    return producer, places


def _begins(topic: "HostedTopic", index: int, producer: ProducerIdAndEpoch) -> bool:
    try:
        log = topic.find(index).online_log()
    except KafkaError:
        return False  # The append will say it.
    return not log.producers.is_in_transaction(*producer)


def _verification(version: int) -> Verification:
    if version >= _ADD_FROM:
        return Verification.ADD
    return Verification.ABORTABLE if version >= _ABORTABLE_FROM else Verification.PLAIN


def _as_told(error: KafkaError, verification: Verification) -> KafkaError:
    """Producers know no coordinator in this place: what passes is told as something they retry."""
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
