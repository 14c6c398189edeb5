"""AddOffsetsToTxn v0-4: add the offsets of a group to a transaction.

The partition of `__consumer_offsets` with the state of the group becomes part of the transaction.
"""

from headrace.broker.api.registry import Call, api
from headrace.broker.api.transactions.fencing import for_age
from headrace.broker.topics.internal_topics import CONSUMER_OFFSETS
from headrace.coordination.partitioning import partition_for
from headrace.errors import KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from headrace.runtime.eager import eager
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_request
from headrace.storage.topic_partition import TopicPartition
from headrace.transactions.coordinator import ProducerIdAndEpoch

_RIGHTS = (
    for_request(Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
    for_request(Operation.READ, ResourceType.GROUP),
)
_FENCED_FROM = 2


def _refuse(
    request: AddOffsetsToTxnRequest, error: KafkaError, version: int
) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=for_age(error, version, _FENCED_FROM).code)


@api(ApiKey.ADD_OFFSETS_TO_TXN, versions=range(5), rights=_RIGHTS, refuse=_refuse)
@eager
async def add_offsets_to_txn(
    request: AddOffsetsToTxnRequest, call: Call
) -> AddOffsetsToTxnResponse:
    broker, access = call.broker, call.access
    access.check(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    access.check(Operation.READ, ResourceType.GROUP, request.group_id)
    await broker.groups.ensure_topic()
    count = len(broker.image.topics[CONSUMER_OFFSETS].partitions)
    await broker.transactions.add(
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        {TopicPartition(CONSUMER_OFFSETS, partition_for(request.group_id, count))},
        0,
    )
    return AddOffsetsToTxnResponse()
