"""Throttle times in answers."""

import pytest

from headrace.broker.quota_answers import with_throttle_time
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.codec import decode, encode
from headrace.protocol.message import Message
from headrace.protocol.schemas.heartbeat import HeartbeatResponse
from headrace.protocol.schemas.metadata import MetadataResponse
from headrace.protocol.schemas.offset_commit import OffsetCommitResponse
from headrace.protocol.schemas.produce import ProduceResponse

ENCODED: list[tuple[ApiKey, type[Message], int]] = [
    (ApiKey.HEARTBEAT, HeartbeatResponse, 1),
    (ApiKey.OFFSET_COMMIT, OffsetCommitResponse, 3),
    (ApiKey.METADATA, MetadataResponse, 3),
]


def test_a_message_gets_its_throttle_time_without_changing_the_given_one() -> None:
    given = ProduceResponse()
    assert with_throttle_time(given, ApiKey.PRODUCE, 9, 70).throttle_time_ms == 70
    assert given.throttle_time_ms == 0


@pytest.mark.parametrize(("key", "kind", "first"), ENCODED, ids=lambda one: str(one))
def test_an_encoded_answer_gets_its_throttle_time(
    key: ApiKey, kind: type[Message], first: int
) -> None:
    for version in kind.VERSIONS:
        body = bytes(encode(kind(), version))
        answer = with_throttle_time(body, key, version, 70)
        expected = 70 if version >= first else 0
        assert decode(kind, version, answer).throttle_time_ms == expected  # type: ignore[attr-defined]
