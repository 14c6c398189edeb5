"""DescribeTransactions v0: the state of transactional ids at their coordinator."""

from collections.abc import Coroutine
from typing import Any

from headrace.broker.api.registry import Call, api
from headrace.broker.coordinators import Shard, when_committed
from headrace.errors import KafkaError, TransactionalIdNotFound
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.refusals import refused
from headrace.protocol.schemas.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_each, to_list
from headrace.transactions.shard import TransactionShard
from headrace.transactions.transaction import by_topic

_RIGHTS = (
    for_each(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID),
    to_list(Operation.DESCRIBE, ResourceType.TOPIC, "topics of a transaction"),
)


@api(ApiKey.DESCRIBE_TRANSACTIONS, versions=range(1), rights=_RIGHTS)
def describe_transactions(
    request: DescribeTransactionsRequest, call: Call
) -> DescribeTransactionsResponse | Coroutine[Any, Any, DescribeTransactionsResponse]:
    shards: list[Shard[TransactionShard]] = []
    response = DescribeTransactionsResponse(
        transaction_states=[_describe(name, call, shards) for name in request.transactional_ids]
    )
    return when_committed(shards, response)


def _describe(
    transactional_id: str, call: Call, shards: list[Shard[TransactionShard]]
) -> TransactionState:
    access = call.access
    try:
        access.check(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        shard = call.broker.transactions.shard_of(transactional_id)
        shards.append(shard)
        found = shard.state.by_id.get(transactional_id)
        if found is None:
            raise TransactionalIdNotFound(f"there is no transactional id {transactional_id}")
    except KafkaError as error:
        return refused(TransactionState, transactional_id, error)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=found.state.label,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=[
            TopicData(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(found.partitions).items()
            if access.allows(Operation.DESCRIBE, ResourceType.TOPIC, topic)
        ],
    )
