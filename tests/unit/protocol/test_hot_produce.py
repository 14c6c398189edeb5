"""The hand-written Produce codec equals the generated one, in every version."""

import pytest

from headrace.protocol.codec import DecodeError, decode, encode
from headrace.protocol.hot_produce import TOPIC_IDS_FROM, Appended, read_produce, write_success
from headrace.protocol.request_limits import ELEMENTS_MAX, TAGS_MAX
from headrace.protocol.schemas.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

VERSIONS = range(3, 14)
NAMES = {b"orders": bytes(range(16)), b"x" * 200: bytes(range(16, 32))}


def request(version: int, *, transactional_id: str | None = None) -> ProduceRequest:
    topics = []
    for name, topic_id in NAMES.items():
        data = [
            PartitionProduceData(index=0, records=b"first"),
            PartitionProduceData(index=7, records=b"second" * 100),
            PartitionProduceData(index=8, records=None),
        ]
        topic = TopicProduceData(partition_data=data)
        if version >= TOPIC_IDS_FROM:
            topic.topic_id = topic_id
        else:
            topic.name = name.decode()
        topics.append(topic)
    return ProduceRequest(
        transactional_id=transactional_id, acks=-1, timeout_ms=1500, topic_data=topics
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("transactional_id", [None, "", "payments"])
def test_reads_bytes_of_the_generated_codec(version: int, transactional_id: str | None) -> None:
    body = encode(request(version, transactional_id=transactional_id), version)
    view = read_produce(memoryview(bytes(3) + body), 3, version)
    assert (view.transactional_id, view.acks, view.timeout_ms) == (transactional_id, -1, 1500)
    keys = NAMES.values() if version >= TOPIC_IDS_FROM else NAMES.keys()
    assert [key for key, _ in view.topics] == list(keys)
    for _, partitions in view.topics:
        assert [(i, r and bytes(r)) for i, r in partitions] == [
            (0, b"first"),
            (7, b"second" * 100),
            (8, None),
        ]


@pytest.mark.parametrize("version", VERSIONS)
def test_record_sets_are_views_of_the_frame(version: int) -> None:
    frame = bytearray(encode(request(version), version))
    view = read_produce(memoryview(frame), 0, version)
    records = view.topics[0][1][0][1]
    assert records is not None
    records[:5] = b"FIRST"
    assert b"FIRST" in frame


@pytest.mark.parametrize("version", VERSIONS)
def test_every_truncation_is_an_error(version: int) -> None:
    body = encode(request(version, transactional_id="payments"), version)
    for end in range(len(body)):
        with pytest.raises(DecodeError):
            read_produce(memoryview(body)[:end], 0, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_writes_bytes_that_the_generated_codec_reads(version: int) -> None:
    keys = list(NAMES.values() if version >= TOPIC_IDS_FROM else NAMES.keys())
    done = [(key, [Appended(0, 41, -1, 5), Appended(7, 1 << 40, 1700, 6)]) for key in keys]
    frame = write_success(version, 99, done)
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    assert int.from_bytes(frame[4:8]) == 99
    header_size = 9 if version >= 9 else 8
    response = decode(ProduceResponse, version, memoryview(frame), header_size)
    for key, topic in zip(keys, response.responses, strict=True):
        assert key == (topic.topic_id if version >= TOPIC_IDS_FROM else topic.name.encode())
        got = [
            (p.index, p.error_code, p.base_offset, p.log_append_time_ms)
            for p in topic.partition_responses
        ]
        assert got == [(0, 0, 41, -1), (7, 0, 1 << 40, 1700)]
        if version >= 5:
            assert [p.log_start_offset for p in topic.partition_responses] == [5, 6]
    assert encode(response, version) == frame[header_size:]


@pytest.mark.parametrize("version", [3, 8, 9, 13])
def test_more_partitions_than_a_request_may_name_are_refused(version: int) -> None:
    def frame(partitions: int) -> memoryview:
        data = [PartitionProduceData(index=1, records=None)] * partitions
        request = ProduceRequest(acks=1, topic_data=[TopicProduceData(partition_data=data)])
        return memoryview(encode(request, version))

    few = read_produce(frame(ELEMENTS_MAX - 10), 0, version)
    assert len(few.topics[0][1]) == ELEMENTS_MAX - 10
    with pytest.raises(DecodeError, match="too many elements"):
        read_produce(frame(ELEMENTS_MAX + 1), 0, version)


def test_a_negative_count_makes_no_room_for_more_partitions() -> None:
    data = [PartitionProduceData(index=1, records=None)] * (ELEMENTS_MAX + 1)
    request = ProduceRequest(
        acks=1, topic_data=[TopicProduceData("x"), TopicProduceData("y", partition_data=data)]
    )
    frame = bytearray(encode(request, 3))
    frame[frame.index(b"x") + 1 : frame.index(b"x") + 5] = b"\x80\0\0\0"
    with pytest.raises(DecodeError, match="too many elements"):
        read_produce(memoryview(frame), 0, 3)


def test_a_topic_without_a_name_is_refused() -> None:
    frame = bytearray(encode(ProduceRequest(acks=1, topic_data=[TopicProduceData("")]), 9))
    assert frame.endswith(b"\x02\x01\x01\0\0")
    frame[-4] = 0
    with pytest.raises(DecodeError, match="no name"):
        read_produce(memoryview(frame), 0, 9)


@pytest.mark.parametrize("count", [TAGS_MAX, TAGS_MAX + 1])
def test_a_few_unknown_tagged_fields_are_passed_over(count: int) -> None:
    """A frame full of them would keep everyone waiting."""
    body = encode(ProduceRequest(acks=1), 9)[:-1]
    frame = memoryview(bytes(body) + bytes((count,)) + b"\x63\0" * count)
    if count <= TAGS_MAX:
        assert read_produce(frame, 0, 9).acks == 1
        assert decode(ProduceRequest, 9, frame).acks == 1
        return
    for read in (lambda: read_produce(frame, 0, 9), lambda: decode(ProduceRequest, 9, frame)):
        with pytest.raises(DecodeError, match="too many elements"):
            read()
