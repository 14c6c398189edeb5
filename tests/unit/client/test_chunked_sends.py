"""The sending side of chunks."""

from typing import Any

import pytest

from headrace import InvalidProperty, Producer, murmur2
from headrace.client.chunked_sends import ChunkOutcomes, chunked_sends

SETTINGS = {"partitioner": "murmur2_random"}


class Outcome:
    """A delivery that keeps its reports."""

    def __init__(self) -> None:
        self.reports: list[Any] = []

    def __call__(self, error: Any, message: Any) -> None:
        self.reports.append((error, message))


@pytest.mark.parametrize(
    ("value", "applies"),
    [
        (None, False),
        (b"0123", False),
        (b"01234", True),
        (bytearray(5), True),
        ("0123", False),
        ("éé!", True),
        (12345, False),
    ],
)
def test_only_values_above_the_size_are_split(value: Any, applies: bool) -> None:
    """PUL-8"""
    sends = chunked_sends(dict(SETTINGS), 4)
    assert sends is not None
    assert sends.applies_to(value) is applies


def test_all_chunks_of_a_record_have_one_partition() -> None:
    """PUL-8"""
    sends = chunked_sends(dict(SETTINGS), 4)
    assert sends is not None
    assert sends.partition_of("k", 7) == murmur2(b"k", 7)
    assert sends.partition_of(None, 7) in range(7)


def test_values_and_keys_of_other_types_are_rejected_as_without_chunks() -> None:
    """PUL-8"""
    producer = Producer({"bootstrap.servers": "127.0.0.1:1", "chunk.bytes": 4})
    with pytest.raises(TypeError, match="value_serializer=function"):
        producer.send("orders", 12345, partition=None)
    producer.partition_counts.of = lambda topic: 3  # type: ignore[method-assign]
    with pytest.raises(TypeError, match="key_serializer=function"):
        producer.send("orders", b"01234", 7)
    producer.disconnect()


def test_a_key_decides_with_another_partitioner_of_librdkafka() -> None:
    """PUL-8"""
    sends = chunked_sends({"partitioner": "consistent"}, 4)
    assert sends is not None
    assert sends.partition_of("k", 7) == -1


def test_a_record_is_delivered_when_its_last_chunk_is() -> None:
    """PUL-8"""
    outcome: Any = Outcome()
    chunks = ChunkOutcomes(outcome)
    chunks.note_sent()
    chunks(None, None)
    chunks.note_sent()
    chunks.note_all_sent()
    assert outcome.reports == []
    message: Any = "last"
    chunks(None, message)
    assert outcome.reports == [(None, "last")]


def test_a_record_fails_with_its_first_failed_chunk() -> None:
    """PUL-8"""
    outcome: Any = Outcome()
    chunks = ChunkOutcomes(outcome)
    errors: list[Any] = ["first", "second", None]
    for error in errors:
        chunks.note_sent()
        chunks(error, None)
    chunks.note_all_sent()
    assert outcome.reports == [("first", None)]


def test_a_chunk_leaves_room_below_the_largest_message() -> None:
    with pytest.raises(InvalidProperty, match=r"chunk\.bytes \(1000000\) must be positive, and"):
        Producer({"bootstrap.servers": "127.0.0.1:1", "chunk.bytes": 1_000_000})


def test_chunks_need_idempotence() -> None:
    """PUL-8"""
    with pytest.raises(InvalidProperty, match=r"needs enable\.idempotence"):
        Producer(
            {
                "bootstrap.servers": "127.0.0.1:1",
                "chunk.bytes": 1_000,
                "enable.idempotence": "false",
            }
        )


@pytest.mark.parametrize("size", ["-1", "many", "inf", "nan"])
def test_sizes_of_chunks_are_numbers(size: str) -> None:
    with pytest.raises(InvalidProperty, match=r"chunk\.bytes"):
        Producer({"bootstrap.servers": "127.0.0.1:1", "chunk.bytes": size})
