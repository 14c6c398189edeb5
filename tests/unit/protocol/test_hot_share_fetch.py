"""The hand-written ShareFetch response equals the generated codec's."""

import pytest

from headrace.protocol.codec import decode, encode
from headrace.protocol.hot_fetch import NodeAddress
from headrace.protocol.hot_share_fetch import SharedRecords, write_share_fetch
from headrace.protocol.schemas.share_fetch import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)

TOPIC = bytes(range(16))
HEADER_SIZE = 9


class FileSlice:
    """A stand-in for bytes in a file."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.size = len(content)


def assembled(parts: list[bytearray | FileSlice]) -> bytes:
    frame = b"".join(p.content if isinstance(p, FileSlice) else p for p in parts)
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    assert int.from_bytes(frame[4:8]) == 77
    return frame[HEADER_SIZE:]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("size", [1, 127, 128, 70_000])
def test_the_answer_equals_that_of_the_codec(version: int, size: int) -> None:
    partitions: list[SharedRecords[FileSlice]] = [
        SharedRecords(0, records=FileSlice(b"f" * size), acquired=[(5, 9, 1), (12, 12, 3)]),
        SharedRecords(1, records=b"b" * size, acquired=[(0, 0, 1)]),
        SharedRecords(2, 3, "unknown", 121, "not yours", 7, 8),
    ]
    expected = ShareFetchResponse(
        acquisition_lock_timeout_ms=30_000,
        responses=[
            ShareFetchableTopicResponse(
                topic_id=TOPIC,
                partitions=[
                    PartitionData(
                        partition_index=one.partition,
                        error_code=one.error_code,
                        error_message=one.error_message,
                        acknowledge_error_code=one.acknowledge_error_code,
                        acknowledge_error_message=one.acknowledge_error_message,
                        current_leader=LeaderIdAndEpoch(one.leader_id, one.leader_epoch),
                        records=content,
                        acquired_records=[AcquiredRecords(*it) for it in one.acquired],
                    )
                    for one, content in zip(
                        partitions, (b"f" * size, b"b" * size, b""), strict=True
                    )
                ],
            )
        ],
    )
    body = assembled(write_share_fetch(77, 30_000, [(TOPIC, partitions)]))
    assert body == bytes(encode(expected, version))


@pytest.mark.parametrize("version", [1, 2])
def test_the_addresses_of_leaders_are_written(version: int) -> None:
    """KIP-951"""
    nodes = [NodeAddress(2, "b.example", 9092, None), NodeAddress(3, "c.example", 9093, "r")]
    body = assembled(write_share_fetch(77, 0, [], nodes=nodes))
    expected = ShareFetchResponse(node_endpoints=[NodeEndpoint(*node) for node in nodes])
    assert body == bytes(encode(expected, version))


@pytest.mark.parametrize("version", [1, 2])
def test_an_error_of_the_whole_answer_is_written(version: int) -> None:
    parts: list[bytearray | FileSlice] = write_share_fetch(
        77, 0, (), error_code=122, error_message="no session"
    )
    response = decode(ShareFetchResponse, version, memoryview(assembled(parts)), 0)
    assert (response.error_code, response.error_message) == (122, "no session")
    assert response.responses == []
