"""AddPartitionsToTxn v0-5: add partitions to a transaction before it writes to them.

Up to v3 clients send it, for one transaction. From v4 on brokers send it, for several transactions,
either to add or only to verify (KIP-890). Clients of transaction.version 2 do not send it.
"""

from collections.abc import Iterable

from headrace.broker.api.registry import Call, api
from headrace.broker.api.transactions.fencing import for_age
from headrace.broker.topics.topology import INTERNAL_TOPICS
from headrace.errors import (
    KafkaError,
    OperationNotAttempted,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from headrace.runtime.eager import eager, finish_each
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_each, for_request
from headrace.storage.topic_partition import TopicPartition
from headrace.transactions.coordinator import ProducerIdAndEpoch

_RIGHTS = (
    for_request(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "v3 and older"),
    for_each(Operation.WRITE, ResourceType.TOPIC, "v3 and older"),
    for_request(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "v4 and newer"),
)
_FENCED_FROM = 2
_BROKERS_FROM = 4

Codes = dict[TopicPartition, int]


def _refuse(
    request: AddPartitionsToTxnRequest, error: KafkaError, version: int
) -> AddPartitionsToTxnResponse:
    code = for_age(error, version, _FENCED_FROM).code
    if version >= _BROKERS_FROM:
        return AddPartitionsToTxnResponse(error_code=code)
    codes = dict.fromkeys(_partitions(request.v3_and_below_topics), code)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_by_topic(codes))


@api(ApiKey.ADD_PARTITIONS_TO_TXN, versions=range(6), rights=_RIGHTS, refuse=_refuse)
@eager
async def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, call: Call
) -> AddPartitionsToTxnResponse:
    if call.version < _BROKERS_FROM:
        only = AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        call.access.check(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, only.transactional_id)
        codes = await _add(only, call)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_by_topic(codes))
    call.access.check_on_cluster(Operation.CLUSTER_ACTION)
    codes_of_each = await finish_each(_add(one, call) for one in request.transactions)
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id, topic_results=_by_topic(codes)
            )
            for transaction, codes in zip(request.transactions, codes_of_each, strict=True)
            if not isinstance(codes, KafkaError)  # `_add` has a code for each error.
        ]
    )


async def _add(transaction: AddPartitionsToTxnTransaction, call: Call) -> Codes:
    """Return a code for each partition; one rejected partition rejects the whole transaction."""
    partitions = _partitions(transaction.topics)
    refused = _refused(partitions, call)
    if refused:
        return dict.fromkeys(partitions, OperationNotAttempted.code) | refused
    producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    codes = dict.fromkeys(partitions, 0)
    try:
        if transaction.verify_only:
            missing = await call.broker.transactions.verify(
                transaction.transactional_id, producer, partitions
            )
            return codes | {partition: error.code for partition, error in missing.items()}
        client_version = 2 if call.version >= _BROKERS_FROM else 0
        await call.broker.transactions.add(
            transaction.transactional_id, producer, partitions.keys(), client_version
        )
    except KafkaError as error:
        return dict.fromkeys(partitions, for_age(error, call.version, _FENCED_FROM).code)
    return codes


def _refused(partitions: Iterable[TopicPartition], call: Call) -> Codes:
    topics, access = call.broker.image.topics, call.access
    is_client = call.version < _BROKERS_FROM
    refused: Codes = {}
    for partition in partitions:
        name, index = partition
        topic = topics.get(name)
        if is_client and (
            name in INTERNAL_TOPICS or not access.allows(Operation.WRITE, ResourceType.TOPIC, name)
        ):
            refused[partition] = TopicAuthorizationFailed.code
        elif topic is None or not 0 <= index < len(topic.partitions):
            refused[partition] = UnknownTopicOrPartition.code
    return refused


def _partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> dict[TopicPartition, None]:
    """The partitions of a request in its order, each once."""
    return {
        TopicPartition(topic.name, index): None for topic in topics for index in topic.partitions
    }


def _by_topic(codes: Codes) -> list[AddPartitionsToTxnTopicResult]:
    results: dict[str, AddPartitionsToTxnTopicResult] = {}
    for (name, index), code in codes.items():
        topic = results.get(name)
        if topic is None:
            topic = results[name] = AddPartitionsToTxnTopicResult(name=name)
        topic.results_by_partition.append(
            AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
        )
    return list(results.values())
