"""AddOffsetsToTxn v0-4: a group's offsets are to be committed with the transaction.

So the partition of `__consumer_offsets` that the group lives in becomes part of it.
"""

from collections.abc import Coroutine
from typing import Any

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
from headrace.runtime.eager import finish_now
from headrace.transactions.coordinator import ProducerIdAndEpoch

_FENCED_FROM = 2


def _refuse(
    request: AddOffsetsToTxnRequest, error: KafkaError, version: int
) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=for_age(error, version, _FENCED_FROM).code)


@api(ApiKey.ADD_OFFSETS_TO_TXN, versions=range(5), refuse=_refuse)
def add_offsets_to_txn(
    request: AddOffsetsToTxnRequest, call: Call
) -> AddOffsetsToTxnResponse | Coroutine[Any, Any, AddOffsetsToTxnResponse]:
    return finish_now(_serve(request, call))


async def _serve(request: AddOffsetsToTxnRequest, call: Call) -> AddOffsetsToTxnResponse:
    broker = call.broker
    await broker.groups.ensure_topic()
    count = len(broker.image.topics[CONSUMER_OFFSETS].partitions)
    await broker.transactions.add(
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        {(CONSUMER_OFFSETS, partition_for(request.group_id, count))},
        0,
    )
    return AddOffsetsToTxnResponse()
