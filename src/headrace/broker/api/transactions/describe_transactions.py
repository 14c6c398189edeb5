"""DescribeTransactions v0: what the coordinator knows of some transactional ids."""

from headrace.broker.api.registry import Call, api
from headrace.errors import KafkaError, TransactionalIdNotFound
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from headrace.transactions.transaction import by_topic


def _refuse(
    request: DescribeTransactionsRequest, error: KafkaError, version: int
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[
            TransactionState(transactional_id=name, error_code=error.code)
            for name in request.transactional_ids
        ]
    )


@api(ApiKey.DESCRIBE_TRANSACTIONS, versions=range(1), refuse=_refuse)
def describe_transactions(
    request: DescribeTransactionsRequest, call: Call
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[_describe(name, call) for name in request.transactional_ids]
    )


def _describe(transactional_id: str, call: Call) -> TransactionState:
    try:
        found = call.broker.transactions.find(transactional_id)
        if found is None:
            raise TransactionalIdNotFound(f"there is no transactional id {transactional_id}")
    except KafkaError as error:
        return TransactionState(transactional_id=transactional_id, error_code=error.code)
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
        ],
    )
