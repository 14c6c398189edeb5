"""Rights to write and read records, and the memories that must not outlive them."""

import asyncio
from typing import Any, cast

from headrace.broker.api.records.fetch import fetch
from headrace.broker.direct_call import DirectCall
from headrace.errors import (
    FetchSessionIdNotFound,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.batches import Record, build_batch
from headrace.protocol.codec import decode, encode
from headrace.protocol.schemas.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.protocol.schemas.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from headrace.protocol.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.security.acls import CLUSTER_NAME, Operation, ResourceType
from tests.builders.authorizers import Right
from tests.builders.guarded_nodes import Answered, GuardedNode

BY_NAME = 12
FORBIDDEN = TopicAuthorizationFailed.code
WRITE_ORDERS: Right = (Operation.WRITE, ResourceType.TOPIC, "orders")
READ_ORDERS: Right = (Operation.READ, ResourceType.TOPIC, "orders")
READ_USERS: Right = (Operation.READ, ResourceType.TOPIC, "users")
USE_ID: Right = (Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "tx")
FOLLOW: Right = (Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)


def batch(**fields: Any) -> bytes:
    return bytes(build_batch([Record(0, 1_700_000_000_000, None, b"value")], **fields))


def producing(*topics: str, records: bytes = b"", **fields: Any) -> ProduceRequest:
    data = [
        TopicProduceData(name=one, partition_data=[PartitionProduceData(0, records or batch())])
        for one in topics
    ]
    return ProduceRequest(acks=fields.pop("acks", 1), timeout_ms=1000, topic_data=data, **fields)


async def produced(guarded: GuardedNode, *topics: str, **fields: Any) -> dict[str, int]:
    answer = await guarded.ask(ApiKey.PRODUCE, producing(*topics, **fields), BY_NAME)
    return {one.name: one.partition_responses[0].error_code for one in answer.responses}


def end_offset(guarded: GuardedNode, topic: str) -> int:
    return guarded.broker.partitions.led(topic, 0).online_log().log_end_offset


async def test_only_forbidden_topics_of_a_produce_request_are_refused(guarded: GuardedNode) -> None:
    await guarded.create_topic("users")
    guarded.grant(WRITE_ORDERS)
    codes = await produced(guarded, "orders", "users", "nothing")
    assert codes == {"orders": 0, "users": FORBIDDEN, "nothing": FORBIDDEN}
    assert (end_offset(guarded, "orders"), end_offset(guarded, "users")) == (1, 0)


async def test_a_forbidden_request_without_answer_closes_the_connection(
    guarded: GuardedNode,
) -> None:
    frame = b"eight by" + encode(producing("orders", acks=0), BY_NAME)
    guarded.start_produce(frame, BY_NAME)
    assert guarded.connection.closed
    assert end_offset(guarded, "orders") == 0


async def test_a_forbidden_topic_does_not_become_part_of_a_transaction(
    guarded: GuardedNode,
) -> None:
    producer = await guarded.broker.transactions.claim("tx", 60_000, None)
    records = batch(
        producer_id=producer.id, producer_epoch=producer.epoch, base_sequence=0, transactional=True
    )
    guarded.grant(USE_ID)
    codes = await produced(guarded, "orders", records=records, transactional_id="tx")
    assert codes == {"orders": FORBIDDEN}
    (transaction,) = guarded.broker.transactions
    assert not transaction.partitions


async def test_a_plain_batch_needs_no_right_to_the_transactional_id(guarded: GuardedNode) -> None:
    guarded.grant(WRITE_ORDERS)
    assert await produced(guarded, "orders", transactional_id="tx") == {"orders": 0}


async def test_a_shape_serves_only_the_client_that_it_was_learned_from(
    guarded: GuardedNode,
) -> None:
    guarded.grant(WRITE_ORDERS)
    await produced(guarded, "orders")
    shape = guarded.connection.produce_shape
    found = guarded.broker.produce_shapes.known
    assert [key[2] for key in found] == [shape.caller]
    with guarded.client("eve"):
        await produced(guarded, "orders")
        assert guarded.connection.produce_shape.caller != shape.caller
    assert len(found) == 2


async def test_shapes_are_forgotten_when_rules_change(guarded: GuardedNode) -> None:
    guarded.grant(WRITE_ORDERS)
    await produced(guarded, "orders")
    shape = guarded.connection.produce_shape
    guarded.grant()
    await guarded.create_topic("users")  # Any change of the metadata.
    assert shape.partition is None
    assert not guarded.broker.produce_shapes.known


# --- fetches --------------------------------------------------------------------------------------


def fetching(*topics: str, wait_ms: int = 0, **fields: Any) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        topics=[FetchTopic(one, partitions=[FetchPartition(0, -1, 0)]) for one in topics],
        **{"session_epoch": -1, **fields},
    )


def codes_of(answer: FetchResponse) -> dict[str, int]:
    return {topic.topic: topic.partitions[0].error_code for topic in answer.responses}


async def fetched(guarded: GuardedNode, *topics: str, **fields: Any) -> dict[str, int]:
    return codes_of(await guarded.ask(ApiKey.FETCH, fetching(*topics, **fields), BY_NAME))


async def test_only_forbidden_topics_of_a_fetch_are_refused(guarded: GuardedNode) -> None:
    await guarded.create_topic("users")
    guarded.grant(READ_ORDERS)
    codes = await fetched(guarded, "orders", "users", "nothing")
    assert codes == {"orders": 0, "users": FORBIDDEN, "nothing": FORBIDDEN}


async def test_a_fetch_of_forbidden_topics_only_is_answered_at_once(guarded: GuardedNode) -> None:
    assert await fetched(guarded, "orders", wait_ms=60_000) == {"orders": FORBIDDEN}


async def test_a_fetch_waits_for_the_topics_that_it_may_read(guarded: GuardedNode) -> None:
    await guarded.create_topic("users")
    guarded.grant(READ_USERS, (Operation.WRITE, ResourceType.TOPIC, "users"))
    waiting = Answered()
    call = DirectCall(guarded.broker, cast(Any, waiting), int(ApiKey.FETCH), BY_NAME, 7)
    fetch(fetching("orders", "users", wait_ms=60_000), call)
    assert not waiting.answered.done()
    await produced(guarded, "users")
    async with asyncio.timeout(20):
        data = memoryview(await waiting.answered)
    found = codes_of(decode(FetchResponse, BY_NAME, data[9:]))
    assert found == {"orders": FORBIDDEN, "users": 0}


class Session:
    """A consumer that continues a fetch session."""

    def __init__(self, guarded: GuardedNode) -> None:
        self.guarded = guarded
        self.id = 0
        self.epoch = 0

    async def fetch(self, *topics: str) -> FetchResponse:
        asked = fetching(*topics, session_id=self.id, session_epoch=self.epoch)
        answer: FetchResponse = await self.guarded.ask(ApiKey.FETCH, asked, BY_NAME)
        self.id, self.epoch = answer.session_id, self.epoch + 1
        return answer


async def test_a_session_asks_once_for_its_topics_while_rules_stay(guarded: GuardedNode) -> None:
    guarded.grant(READ_ORDERS)
    session = Session(guarded)
    await session.fetch("orders")
    guarded.rights.asked.clear()
    assert codes_of(await session.fetch("orders")) == {}
    assert guarded.rights.asked == []


async def test_a_session_loses_a_topic_with_the_right_to_it(guarded: GuardedNode) -> None:
    guarded.grant(READ_ORDERS)
    session = Session(guarded)
    assert codes_of(await session.fetch("orders")) == {"orders": 0}
    guarded.grant()
    assert codes_of(await session.fetch()) == {"orders": FORBIDDEN}


async def test_a_session_gains_a_forbidden_topic_with_a_refusal(guarded: GuardedNode) -> None:
    await guarded.create_topic("users")
    guarded.grant(READ_ORDERS)
    session = Session(guarded)
    await session.fetch("orders")
    assert codes_of(await session.fetch("users")) == {"users": FORBIDDEN}


async def test_a_session_does_not_lend_its_rights_to_another_client(guarded: GuardedNode) -> None:
    guarded.grant(READ_ORDERS)
    session = Session(guarded)
    await session.fetch("orders")
    guarded.rights.refused = "eve"
    with guarded.client("eve"):
        assert codes_of(await session.fetch()) == {"orders": FORBIDDEN}


async def test_a_topic_that_appears_later_is_checked_then(guarded: GuardedNode) -> None:
    guarded.grant(READ_ORDERS, READ_USERS)
    session = Session(guarded)
    found = codes_of(await session.fetch("orders", "users"))
    assert found == {"orders": 0, "users": UnknownTopicOrPartition.code}
    guarded.rights.asked.clear()
    await session.fetch()
    assert READ_USERS in guarded.rights.asked


async def test_a_follower_needs_the_right_to_act_for_the_cluster(guarded: GuardedNode) -> None:
    guarded.grant(READ_ORDERS)
    assert await fetched(guarded, "orders", replica_id=2) == {"orders": FORBIDDEN}
    guarded.grant(FOLLOW)
    assert await fetched(guarded, "orders", replica_id=2) != {"orders": FORBIDDEN}


async def test_a_client_cannot_end_the_session_of_a_follower(guarded: GuardedNode) -> None:
    guarded.grant(FOLLOW)
    asked = fetching("orders", replica_id=2, session_epoch=0)
    session_id = (await guarded.ask(ApiKey.FETCH, asked, BY_NAME)).session_id
    guarded.grant()
    for epoch in (0, -1):
        await fetched(guarded, "orders", replica_id=2, session_id=session_id, session_epoch=epoch)
    assert len(guarded.broker.fetch_sessions) == 1


async def test_a_follower_without_the_right_continues_no_session(guarded: GuardedNode) -> None:
    asked = fetching(replica_id=2, session_id=5, session_epoch=7)
    answer = await guarded.ask(ApiKey.FETCH, asked, BY_NAME)
    assert answer.error_code == FetchSessionIdNotFound.code


async def test_records_are_deleted_where_the_client_may(guarded: GuardedNode) -> None:
    await guarded.create_topic("users")
    guarded.grant((Operation.DELETE, ResourceType.TOPIC, "orders"))
    topics = [
        DeleteRecordsTopic(name, [DeleteRecordsPartition(0, 0)]) for name in ("orders", "users")
    ]
    answer = await guarded.ask(ApiKey.DELETE_RECORDS, DeleteRecordsRequest(topics))
    found = {topic.name: topic.partitions[0] for topic in answer.topics}
    assert found["orders"].error_code == 0
    assert (found["users"].error_code, found["users"].low_watermark) == (FORBIDDEN, -1)
