"""Rights of producers in transactions, and of those who look at them."""

from typing import Any

import pytest

from headrace.errors import (
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    OperationNotAttempted,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
)
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.add_offsets_to_txn import AddOffsetsToTxnRequest
from headrace.protocol.schemas.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from headrace.protocol.schemas.describe_transactions import DescribeTransactionsRequest
from headrace.protocol.schemas.init_producer_id import InitProducerIdRequest
from headrace.protocol.schemas.list_transactions import ListTransactionsRequest
from headrace.protocol.schemas.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headrace.protocol.schemas.write_txn_markers import WriteTxnMarkersRequest
from headrace.security.acls import CLUSTER_NAME, Operation, ResourceType
from tests.builders.authorizers import Right
from tests.builders.guarded_nodes import GuardedNode

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
ID = ResourceType.TRANSACTIONAL_ID
USE_ID: Right = (Operation.WRITE, ID, "tx")
SEE_ID: Right = (Operation.DESCRIBE, ID, "tx")
USE_GROUP: Right = (Operation.READ, GROUP, "readers")
FORBIDDEN = TopicAuthorizationFailed.code


@pytest.mark.parametrize(
    ("right", "code"),
    [
        ((Operation.IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME), 0),
        ((Operation.WRITE, TOPIC, "anything"), 0),
        ((Operation.READ, TOPIC, "orders"), ClusterAuthorizationFailed.code),
    ],
    ids=["idempotent write", "write to any topic", "neither"],
)
async def test_idempotent_producers_may_write_to_some_topic(
    guarded: GuardedNode, right: Right, code: int
) -> None:
    guarded.grant(right)
    asked = InitProducerIdRequest(producer_id=-1, producer_epoch=-1, transactional_id=None)
    assert (await guarded.ask(ApiKey.INIT_PRODUCER_ID, asked)).error_code == code


async def test_a_right_to_topics_is_none_to_a_transactional_id(guarded: GuardedNode) -> None:
    guarded.grant((Operation.WRITE, TOPIC, "orders"))
    asked = InitProducerIdRequest("tx", 60_000, -1, -1)
    answer = await guarded.ask(ApiKey.INIT_PRODUCER_ID, asked)
    assert answer.error_code == TransactionalIdAuthorizationFailed.code
    assert list(guarded.broker.transactions) == []


def adding(producer: Any, *topics: str) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="tx",
        v3_and_below_producer_id=producer.id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(one, [0]) for one in topics],
    )


async def test_one_forbidden_topic_keeps_all_out_of_the_transaction(guarded: GuardedNode) -> None:
    await guarded.create_topic("users")
    producer = await guarded.broker.transactions.claim("tx", 60_000, None)
    guarded.grant(USE_ID, (Operation.WRITE, TOPIC, "orders"))
    asked = adding(producer, "orders", "users")
    answer = await guarded.ask(ApiKey.ADD_PARTITIONS_TO_TXN, asked, 3)
    codes = {
        one.name: one.results_by_partition[0].partition_error_code
        for one in answer.results_by_topic_v3_and_below
    }
    assert codes == {"orders": OperationNotAttempted.code, "users": FORBIDDEN}
    assert not next(iter(guarded.broker.transactions)).partitions


async def test_clients_cannot_use_the_requests_of_brokers(guarded: GuardedNode) -> None:
    guarded.grant(USE_ID, (Operation.WRITE, TOPIC, "orders"))
    topics = [AddPartitionsToTxnTopic("orders", [0])]
    asked = AddPartitionsToTxnRequest([AddPartitionsToTxnTransaction("tx", 1, 0, False, topics)])
    answer = await guarded.ask(ApiKey.ADD_PARTITIONS_TO_TXN, asked)
    assert answer.error_code == ClusterAuthorizationFailed.code


@pytest.mark.parametrize(
    ("right", "code"),
    [
        (USE_ID, GroupAuthorizationFailed.code),
        (USE_GROUP, TransactionalIdAuthorizationFailed.code),
    ],
    ids=["no group", "no id"],
)
async def test_offsets_in_a_transaction_need_the_right_to_both(
    guarded: GuardedNode, right: Right, code: int
) -> None:
    guarded.grant(right)
    asked = AddOffsetsToTxnRequest("tx", 1, 0, "readers")
    assert (await guarded.ask(ApiKey.ADD_OFFSETS_TO_TXN, asked)).error_code == code


async def test_offsets_of_forbidden_topics_stay_out_of_the_transaction(
    guarded: GuardedNode,
) -> None:
    guarded.grant(USE_ID, USE_GROUP)
    partitions = [TxnOffsetCommitRequestPartition(0, 5)]
    asked = TxnOffsetCommitRequest(
        "tx",
        "readers",
        1,
        0,
        topics=[TxnOffsetCommitRequestTopic(one, partitions) for one in ("orders", "nothing")],
    )
    answer = await guarded.ask(ApiKey.TXN_OFFSET_COMMIT, asked)
    codes = {one.name: one.partitions[0].error_code for one in answer.topics}
    assert codes == {"orders": FORBIDDEN, "nothing": FORBIDDEN}


@pytest.mark.parametrize("operation", [Operation.ALTER, Operation.CLUSTER_ACTION])
async def test_administrators_and_brokers_write_markers(
    guarded: GuardedNode, operation: Operation
) -> None:
    guarded.grant((operation, CLUSTER, CLUSTER_NAME))
    answer = await guarded.ask(ApiKey.WRITE_TXN_MARKERS, WriteTxnMarkersRequest([]))
    assert answer.markers == []


@pytest.mark.parametrize(
    ("rights", "topics"),
    [([], []), ([(Operation.DESCRIBE, TOPIC, "orders")], ["orders"])],
    ids=["hidden", "shown"],
)
async def test_a_described_transaction_leaves_out_hidden_topics(
    guarded: GuardedNode, rights: list[Right], topics: list[str]
) -> None:
    await guarded.begin_transaction()
    guarded.grant(SEE_ID, *rights)
    asked = DescribeTransactionsRequest(["tx"])
    (found,) = (await guarded.ask(ApiKey.DESCRIBE_TRANSACTIONS, asked)).transaction_states
    assert found.error_code == 0
    assert [one.topic for one in found.topics] == topics


@pytest.mark.parametrize(("rights", "expected"), [([], []), ([SEE_ID], ["tx"])])
async def test_lists_leave_out_hidden_transactional_ids(
    guarded: GuardedNode, rights: list[Right], expected: list[str]
) -> None:
    await guarded.begin_transaction()
    guarded.grant(*rights)
    answer = await guarded.ask(ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest())
    assert [one.transactional_id for one in answer.transaction_states] == expected
