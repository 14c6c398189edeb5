"""The hand-written Fetch response equals the generated codec's, in every version."""

import pytest

from headrace.protocol.codec import decode, encode
from headrace.protocol.hot_fetch import (
    FLEXIBLE_FROM,
    TOPIC_IDS_FROM,
    FetchedPartition,
    NodeAddress,
    write_fetch,
)
from headrace.protocol.schemas.fetch import FetchResponse

VERSIONS = range(4, 19)
KEY = {False: b"orders", True: bytes(range(16))}


class FileSlice:
    """A stand-in for bytes in a file."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.size = len(content)


def assembled(parts: list[bytearray | FileSlice]) -> bytes:
    return b"".join(p.content if isinstance(p, FileSlice) else p for p in parts)


def written(
    version: int, *partitions: FetchedPartition[FileSlice]
) -> tuple[bytes, FetchResponse, int]:
    topics = [(KEY[version >= TOPIC_IDS_FROM], partitions)] if partitions else []
    frame = assembled(write_fetch(version, 77, 1234, topics))
    header_size = 9 if version >= FLEXIBLE_FROM else 8
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    assert int.from_bytes(frame[4:8]) == 77
    return frame, decode(FetchResponse, version, memoryview(frame), header_size), header_size


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", [1, 126, 127, 128, 70_000])
def test_files_and_bytes_arrive_as_the_records_of_their_partitions(version: int, size: int) -> None:
    frame, response, header_size = written(
        version,
        FetchedPartition(0, 0, 10, 9, 1, FileSlice(b"f" * size)),
        FetchedPartition(1, 0, 20, 19, 2, b"b" * size),
        FetchedPartition(2, 1, -1, -1, -1, None),
        FetchedPartition(3, 0, 30, 29, 3, FileSlice(b"g" * size), ((8, 4), (9, 5))),
        FetchedPartition(4, 0, 30, 29, 3, None, ()),
    )
    got = [
        (p.partition_index, p.error_code, p.high_watermark, p.last_stable_offset, bytes(p.records))
        for p in response.responses[0].partitions
        if p.records is not None
    ]
    assert got == [
        (0, 0, 10, 9, b"f" * size),
        (1, 0, 20, 19, b"b" * size),
        (2, 1, -1, -1, b""),
        (3, 0, 30, 29, b"g" * size),
        (4, 0, 30, 29, b""),
    ]
    aborted = [p.aborted_transactions for p in response.responses[0].partitions]
    assert aborted[:3] == [None, None, None]
    assert [(a.producer_id, a.first_offset) for a in aborted[3] or ()] == [(8, 4), (9, 5)]
    assert aborted[4] == []
    assert encode(response, version) == frame[header_size:]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_diverging_epoch_is_written_in_versions_that_have_it(version: int) -> None:
    parted = FetchedPartition[FileSlice](0, 0, 10, 9, 1, None, None, (3, 1 << 40))
    frame, response, header_size = written(version, parted, FetchedPartition(1, 0, 5, 5, 0, b"r"))
    first, second = response.responses[0].partitions
    told = (first.diverging_epoch.epoch, first.diverging_epoch.end_offset)
    assert told == ((3, 1 << 40) if version >= FLEXIBLE_FROM else (-1, -1))
    assert second.records == b"r"
    assert encode(response, version) == frame[header_size:]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_error_names_the_leader_and_its_address(version: int) -> None:
    led_elsewhere = FetchedPartition[FileSlice](0, 6, -1, -1, -1, None, current_leader=(2, 9))
    nodes = [NodeAddress(2, "höst", 9092, None), NodeAddress(3, "other", 9093, "rack")]
    topics = [(KEY[version >= TOPIC_IDS_FROM], [led_elsewhere])]
    frame = assembled(write_fetch(version, 1, 1234, topics, nodes=nodes))
    header_size = 9 if version >= FLEXIBLE_FROM else 8
    response = decode(FetchResponse, version, frame, header_size)
    ((partition,),) = (topic.partitions for topic in response.responses)
    leader = (partition.current_leader.leader_id, partition.current_leader.leader_epoch)
    assert leader == ((2, 9) if version >= FLEXIBLE_FROM else (-1, -1))
    found = [(one.node_id, one.host, one.port, one.rack) for one in response.node_endpoints]
    assert found == ([tuple(node) for node in nodes] if version >= 16 else [])
    assert encode(response, version) == frame[header_size:]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_without_topics(version: int) -> None:
    _, response, _ = written(version)
    assert response.responses == []
    assert response.session_id == (1234 if version >= 7 else 0)


@pytest.mark.parametrize("version", range(7, 19))
def test_a_refusal_of_the_whole_request(version: int) -> None:
    frame = assembled(write_fetch(version, 1, 0, (), error_code=70))
    response = decode(FetchResponse, version, frame, 9 if version >= FLEXIBLE_FROM else 8)
    assert response.error_code == 70
