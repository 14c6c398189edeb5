"""DescribeTopicPartitions: pages of partitions, with a cursor between them."""

from pathlib import Path
from typing import Any

import pytest

from headrace.errors import InvalidRequest, InvalidTopicException, UnknownTopicOrPartition
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from tests.builders import metadata_images
from tests.unit.broker.api.builders import UnitBroker, a_broker, a_topic, ask, image_with

Page = list[tuple[str | None, list[int]]]


@pytest.fixture
def broker(tmp_path: Path) -> UnitBroker:
    broker = a_broker(tmp_path)
    broker.controller.image = image_with(a_topic("five", 5), a_topic("two", 2))
    return broker


async def describe(
    broker: UnitBroker, *names: str, at: tuple[str, int] | None = None, **fields: Any
) -> DescribeTopicPartitionsResponse:
    cursor = None if at is None else DescribeTopicPartitionsRequestCursor(*at)
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names], cursor=cursor, **fields
    )
    response = await ask(broker, ApiKey.DESCRIBE_TOPIC_PARTITIONS, request)
    assert isinstance(response, DescribeTopicPartitionsResponse)
    return response


def page_of(response: DescribeTopicPartitionsResponse) -> Page:
    return [
        (topic.name, [one.partition_index for one in topic.partitions]) for topic in response.topics
    ]


def cursor_of(response: DescribeTopicPartitionsResponse) -> tuple[str, int] | None:
    cursor = response.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


async def test_topics_come_in_order_and_once(broker: UnitBroker) -> None:
    response = await describe(broker, "two", "five", "two")
    assert page_of(response) == [("five", [0, 1, 2, 3, 4]), ("two", [0, 1])]
    assert cursor_of(response) is None
    assert response.topics[0].topic_authorized_operations == 3576


async def test_an_empty_list_asks_for_all_topics(broker: UnitBroker) -> None:
    assert [name for name, _ in page_of(await describe(broker))] == ["five", "two"]


@pytest.mark.parametrize(
    ("limit", "page", "cursor"),
    [
        (3, [("five", [0, 1, 2])], ("five", 3)),
        (5, [("five", [0, 1, 2, 3, 4])], ("two", 0)),
        (6, [("five", [0, 1, 2, 3, 4]), ("two", [0])], ("two", 1)),
        (7, [("five", [0, 1, 2, 3, 4]), ("two", [0, 1])], None),
        (0, [("five", [0])], ("five", 1)),
        (-5, [("five", [0])], ("five", 1)),
    ],
)
async def test_a_full_page_has_a_cursor_to_the_next_page(
    broker: UnitBroker, limit: int, page: Page, cursor: tuple[str, int] | None
) -> None:
    response = await describe(broker, "five", "two", response_partition_limit=limit)
    assert (page_of(response), cursor_of(response)) == (page, cursor)


async def test_pages_together_are_the_whole(broker: UnitBroker) -> None:
    seen: list[tuple[str | None, int]] = []
    at: tuple[str, int] | None = ("five", 0)
    while at is not None:
        response = await describe(broker, "five", "two", at=at, response_partition_limit=2)
        seen += [(name, index) for name, indexes in page_of(response) for index in indexes]
        at = cursor_of(response)
    assert seen == [("five", index) for index in range(5)] + [("two", 0), ("two", 1)]


async def test_the_broker_limits_a_page_too(tmp_path: Path) -> None:
    broker = a_broker(tmp_path, max_request_partition_size_limit=2)
    broker.controller.image = image_with(a_topic("five", 5))
    assert page_of(await describe(broker)) == [("five", [0, 1])]


async def test_a_cursor_behind_the_last_partition_finds_nothing_there(broker: UnitBroker) -> None:
    response = await describe(broker, "five", "two", at=("five", 9))
    assert page_of(response) == [("five", []), ("two", [0, 1])]


@pytest.mark.parametrize("at", [("five", -1), ("zzz", 0), ("aaa", 0)])
async def test_a_cursor_that_cannot_be_is_refused(broker: UnitBroker, at: tuple[str, int]) -> None:
    response = await describe(broker, "five", "two", at=at)
    assert [topic.error_code for topic in response.topics] == [InvalidRequest.code] * 2


async def test_missing_topics_have_their_errors(broker: UnitBroker) -> None:
    response = await describe(broker, "nope", "a b")
    assert {topic.name: topic.error_code for topic in response.topics} == {
        "nope": UnknownTopicOrPartition.code,
        "a b": InvalidTopicException.code,
    }


async def test_a_full_page_stops_before_a_missing_topic(broker: UnitBroker) -> None:
    response = await describe(broker, "five", "two", "zope", response_partition_limit=7)
    assert cursor_of(response) == ("zope", 0)


async def test_eligible_leaders_and_offline_replicas_are_described(broker: UnitBroker) -> None:
    image = metadata_images.image_with(
        brokers=[1, 2], fenced=[2], topics={"orders": 1}, replicas=[1, 2]
    )
    state = {"leader": -1, "isr": [], "elr": [2], "last_known_elr": [1]}
    broker.controller.image = metadata_images.with_partition(image, "orders", 0, **state)
    (topic,) = (await describe(broker, "orders")).topics
    (partition,) = topic.partitions
    assert (partition.leader_id, partition.isr_nodes) == (-1, [])
    assert partition.eligible_leader_replicas == [2]
    assert partition.last_known_elr == [1]
    assert partition.offline_replicas == [2]
