"""A remembered request shape must give exactly what decoding and encoding would give."""

from struct import unpack_from
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headrace.broker.produce import shapes as produce_shapes
from headrace.broker.produce.shapes import PREFIX_START, ProduceShape, ProduceShapes
from headrace.protocol.codec import encode
from headrace.protocol.hot_produce import (
    FLEXIBLE_FROM,
    TOPIC_IDS_FROM,
    Appended,
    read_produce,
    write_success,
)
from headrace.protocol.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.replication.partition import Partition
from headrace.storage.config import LogConfig

VERSIONS = range(7, 14)
NAME, ID = b"orders", bytes(range(16))
SIZES = [61, 125, 126, 127, 128, 16_381, 16_382, 16_383, 16_384, 2_097_151, 2_097_152]


def hosted(index: int = 3, **config: Any) -> Partition:
    log = SimpleNamespace(config=LogConfig(**config))
    return cast(Partition, SimpleNamespace(index=index, log=log))


def frame_of(version: int, size: int, *, count: int = 1, **fields: Any) -> memoryview:
    sets = [PartitionProduceData(index=3 + i, records=b"r" * size) for i in range(count)]
    topic = TopicProduceData(partition_data=sets)
    if version >= TOPIC_IDS_FROM:
        topic.topic_id = ID
    else:
        topic.name = NAME.decode()
    fields = {"acks": 1, "timeout_ms": 1000, "topic_data": [topic], **fields}
    return memoryview(b"eight by" + encode(ProduceRequest(**fields), version))


def learned(shapes: ProduceShapes, frame: memoryview, version: int) -> int:
    """Learn the shape of a frame and return the size of its prefix."""
    shape = shapes.learn(frame, version, read_produce(frame, 8, version), hosted())
    assert shape is not None
    assert shape.prefix == frame[PREFIX_START : shape.prefix_size]
    return shape.prefix_size


def recognised(
    shapes: ProduceShapes, frame: memoryview, version: int, prefix_size: int
) -> ProduceShape | None:
    return shapes.find(version, frame, prefix_size)


def records_in(shape: ProduceShape, frame: memoryview) -> bytes | None:
    first = shape.find_records(frame, shape.prefix_size, len(frame))
    return bytes(frame[first : len(frame) - shape.tail_size]) if first else None


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", SIZES)
def test_records_of_any_size_are_found_behind_a_known_prefix(version: int, size: int) -> None:
    shapes = ProduceShapes()
    prefix_size = learned(shapes, frame_of(version, 100), version)
    frame = frame_of(version, size)
    shape = recognised(shapes, frame, version, prefix_size)
    assert shape is not None
    assert records_in(shape, frame) == b"r" * size


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", SIZES)
def test_a_request_of_any_size_is_learned(version: int, size: int) -> None:
    shapes = ProduceShapes()
    prefix_size = learned(shapes, frame_of(version, size), version)
    assert recognised(shapes, frame_of(version, 5), version, prefix_size) is not None


@pytest.mark.parametrize("version", VERSIONS)
def test_the_answer_equals_that_of_the_encoder(version: int) -> None:
    key = ID if version >= TOPIC_IDS_FROM else NAME
    shape = ProduceShape(hosted(), key, 1, version)
    done = [(key, [Appended(3, 1 << 40, 1_700_000_000_000, 17)])]
    assert shape.answer(99, 1 << 40, 1_700_000_000_000, 17) == write_success(version, 99, done)


@pytest.mark.parametrize("version", VERSIONS)
def test_requests_with_two_partitions_or_other_acks_do_not_match(version: int) -> None:
    shapes = ProduceShapes()
    prefix_size = learned(shapes, frame_of(version, 100), version)
    for other in (frame_of(version, 100, acks=-1), frame_of(version, 100, timeout_ms=7)):
        assert recognised(shapes, other, version, prefix_size) is None
    several = frame_of(version, 100, count=2)
    shape = recognised(shapes, several, version, prefix_size)
    assert shape is None or records_in(shape, several) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_frame_with_bytes_behind_the_records_is_decoded_normally(version: int) -> None:
    shapes = ProduceShapes()
    prefix_size = learned(shapes, frame_of(version, 100), version)
    longer = memoryview(bytes(frame_of(version, 100)) + b"\0")
    shape = recognised(shapes, longer, version, prefix_size)
    assert shape is not None
    assert records_in(shape, longer) is None


def test_no_shape_is_learned_for_topics_that_sync_each_batch() -> None:
    shapes, frame = ProduceShapes(), frame_of(7, 100)
    synced = hosted(flush_messages=1)
    assert shapes.learn(frame, 7, read_produce(frame, 8, 7), synced) is None
    assert not shapes.known


@pytest.mark.parametrize("name", [None, "t"])
def test_a_shape_records_whether_it_is_transactional(name: str | None) -> None:
    """The first batch in a partition takes the long way: the log refuses it in the short one."""
    shapes, frame = ProduceShapes(), frame_of(7, 100, transactional_id=name)
    shape = recognised(shapes, frame, 7, learned(shapes, frame, 7))
    assert shape is not None
    assert shape.is_transactional == (name is not None)


@pytest.mark.parametrize("rest", [b"", b"\x80", b"\x80" * 9, b"\x80\x80\x80\x80\x08\0\0\0"])
def test_a_length_that_does_not_end_is_rejected(rest: bytes) -> None:
    shapes = ProduceShapes()
    prefix_size = learned(shapes, frame_of(9, 100), 9)
    hostile = memoryview(bytes(frame_of(9, 100)[:prefix_size]) + rest)
    shape = recognised(shapes, hostile, 9, prefix_size)
    assert shape is not None
    assert records_in(shape, hostile) is None


@pytest.mark.parametrize("padding", [b"\x80" * 4, b"\x80" * 9, b"\x80" * 1_000])
def test_a_length_in_more_than_five_bytes_is_rejected(padding: bytes) -> None:
    """It would be right; but reading one of any size would take any time."""
    shapes = ProduceShapes()
    prefix_size = learned(shapes, frame_of(9, 100), 9)
    opening = bytes(frame_of(9, 100)[:prefix_size])
    length = b"\xe5" + padding + b"\0"
    hostile = memoryview(opening + length + b"r" * 100 + bytes(3))
    shape = recognised(shapes, hostile, 9, prefix_size)
    assert shape is not None
    assert records_in(shape, hostile) is None


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", [0, 1, 60])
def test_a_frame_smaller_than_a_batch_is_decoded_normally(version: int, size: int) -> None:
    shapes = ProduceShapes()
    prefix_size = learned(shapes, frame_of(version, 100), version)
    frame = frame_of(version, size)
    shape = recognised(shapes, frame, version, prefix_size)
    assert shape is not None
    assert records_in(shape, frame) is None


def sent_to(topic: str, version: int, client_id: str | None = "ada", size: int = 100) -> memoryview:
    """A frame with a header, as a client sends it."""
    header = b"eight by" + (b"\xff\xff" if client_id is None else b"\0\3" + client_id.encode())
    header += b"\0" if version >= FLEXIBLE_FROM else b""
    response = TopicProduceData(
        partition_data=[PartitionProduceData(index=3, records=b"r" * size)],
    )
    if version >= TOPIC_IDS_FROM:
        response.topic_id = topic.encode().ljust(16)
    else:
        response.name = topic
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[response])
    return memoryview(header + encode(request, version))


def learned_from(shapes: ProduceShapes, frame: memoryview, version: int) -> ProduceShape:
    (length,) = unpack_from(">h", frame, PREFIX_START)
    start = PREFIX_START + 2 + max(length, 0) + (1 if version >= FLEXIBLE_FROM else 0)
    shape = shapes.learn(frame, version, read_produce(frame, start, version), hosted())
    assert shape is not None
    return shape


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("client_id", [None, "ada"])
def test_topics_with_names_of_different_lengths_alternate(
    version: int, client_id: str | None
) -> None:
    shapes = ProduceShapes()
    frames = [sent_to(topic, version, client_id) for topic in ("orders", "customers")]
    first, second = (learned_from(shapes, frame, version) for frame in frames)
    assert shapes.find(version, frames[0], second.prefix_size) is first
    assert shapes.find(version, frames[1], first.prefix_size) is second


@pytest.mark.parametrize("version", VERSIONS)
def test_a_cut_frame_is_not_recognised_by_another_length(version: int) -> None:
    shapes, whole = ProduceShapes(), sent_to("orders", version)
    shape = learned_from(shapes, whole, version)
    for end in range(PREFIX_START, shape.frame_size_min - 4):
        assert shapes.find(version, whole[:end], prefix_size=9) is None


def test_a_full_cache_forgets_half_of_its_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shapes of every age are dropped: a client that cycles through its topics needs the oldest."""
    monkeypatch.setattr(produce_shapes, "_SHAPES_MAX", 8)
    shapes = ProduceShapes()
    every = [learned_from(shapes, sent_to(f"t{number}", 9), 9) for number in range(9)]
    left = [shape for shape in every if shape.partition is not None]
    assert left == [every[number] for number in (1, 3, 5, 7, 8)]
    assert list(shapes.known.values()) == left


def test_forgotten_shapes_are_not_recognised() -> None:
    """A connection remembers its last shape, which must not lead to a partition any more."""
    shapes, frame = ProduceShapes(), frame_of(7, 100)
    remembered = recognised(shapes, frame, 7, learned(shapes, frame, 7))
    shapes.forget()
    assert not shapes.known
    assert remembered is not None
    assert remembered.partition is None
