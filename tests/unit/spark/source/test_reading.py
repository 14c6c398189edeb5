"""The errors of a task whose topic was recreated after planning."""

from typing import Any, cast

import pytest

from headrace.errors import UnknownTopicId
from headrace.protocol.schemas.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from headrace.protocol.topic_partition import TopicPartition
from headrace.protocol.uuids import random_uuid
from headrace.spark.source.brokers import Topic
from headrace.spark.source.client_settings import ClientSettings
from headrace.spark.source.errors import PlanOutdated, TopicRecreated
from headrace.spark.source.planning import Range
from headrace.spark.source.reading import RangeReader
from headrace.spark.source.record_columns import Wanted

PLACE = TopicPartition("orders", 0)


class MadeAgain:
    """Brokers, and the connection to one of them, that know only a newer topic of the name."""

    settings = ClientSettings()

    def __init__(self) -> None:
        self.record_bytes: dict[str, float] = {}

    def know(self, names: set[str]) -> None: ...

    def forget_metadata(self) -> None: ...

    def leader_of(self, place: TopicPartition) -> int:
        return 0

    def topic(self, name: str) -> Topic:
        return Topic(name, random_uuid(), {0: 0})

    def fetcher(self, node_id: int) -> "MadeAgain":
        return self

    def send(self, request: Any) -> None: ...

    def receive(self) -> FetchResponse:
        refused = PartitionData(partition_index=0, error_code=UnknownTopicId.code)
        return FetchResponse(
            responses=[FetchableTopicResponse(topic="orders", partitions=[refused])]
        )


@pytest.mark.parametrize(
    ("fails", "error", "advice"),
    [
        (True, TopicRecreated, "or set failOnDataLoss=false to read the new topic"),
        (False, PlanOutdated, "it then reads the new topic"),
    ],
)
def test_the_advice_for_a_topic_made_again_is_one_that_was_not_followed_yet(
    fails: bool, error: type[TopicRecreated], advice: str
) -> None:
    planned = Range(PLACE, 0, 10, random_uuid())
    brokers = cast(Any, MadeAgain())
    reader = RangeReader(brokers, [planned], Wanted(), fails_on_data_loss=fails)
    with pytest.raises(TopicRecreated, match=advice) as refused:
        list(reader.pieces())
    assert refused.type is error
