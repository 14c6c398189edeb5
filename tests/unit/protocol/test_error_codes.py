"""Errors are found wherever a response has them."""

import pytest

from headrace.broker.api.registry import APIS
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import error_codes_of
from headrace.protocol.schemas.heartbeat import HeartbeatResponse
from headrace.protocol.schemas.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.protocol.schemas.produce import ProduceResponse


def test_errors_are_found_at_the_top_in_topics_and_in_partitions() -> None:
    partitions = [MetadataResponsePartition(error_code=code) for code in (5, 0, 9)]
    topics = [
        MetadataResponseTopic(error_code=3),
        MetadataResponseTopic(partitions=partitions),
    ]
    response = MetadataResponse(error_code=-1, topics=topics)
    assert sorted(error_codes_of(MetadataResponse)(response)) == [-1, 3, 5, 9]


def test_an_answer_without_errors_has_no_error_codes() -> None:
    assert error_codes_of(HeartbeatResponse)(HeartbeatResponse()) == []
    assert error_codes_of(MetadataResponse)(MetadataResponse(topics=[])) == []


@pytest.mark.parametrize("key", sorted(APIS))
def test_every_response_can_be_looked_through(key: int) -> None:
    if key in (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.SHARE_FETCH):  # Written by hand.
        assert error_codes_of(ProduceResponse)(ProduceResponse()) == []
        return
    handler = APIS[key].handler()
    assert handler.error_codes(handler.response_type()) == []
