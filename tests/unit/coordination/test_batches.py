"""Batches of coordinator records: what is written is what is replayed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.coordination.batches import encode_batch, records_in
from headrace.coordination.effects import Producer
from headrace.errors import CorruptMessage
from headrace.protocol.batches import HEADER_SIZE, build_batch, check_crc, read_header, records_of
from headrace.protocol.coordinator_records import CoordinatorRecord

records = st.lists(
    st.builds(
        CoordinatorRecord, st.binary(min_size=1, max_size=200), st.none() | st.binary(max_size=300)
    ),
    min_size=1,
    max_size=200,
)


@given(records, st.none() | st.builds(Producer, st.integers(0, 99), st.integers(0, 9)))
def test_a_batch_equals_that_of_the_general_encoder(
    given: list[CoordinatorRecord], producer: Producer | None
) -> None:
    batch = encode_batch(given, 1000, producer)
    header = read_header(batch)
    check_crc(batch, 0, header.size)
    read = records_of(bytes(batch))
    assert [(one.key, one.value, one.timestamp) for one in read] == [
        (key, value, 1000) for key, value in given
    ]
    producer_id, epoch = producer or (-1, -1)
    assert batch == build_batch(
        read, producer_id=producer_id, producer_epoch=epoch, transactional=producer is not None
    )


@given(records)
def test_written_records_are_replayed(given: list[CoordinatorRecord]) -> None:
    batch = bytes(encode_batch(given, 1000, Producer(7, 1)))
    replayed = list(records_in(batch, 0, read_header(batch)))
    assert [record for record, _ in replayed] == given
    assert [facts.offset for _, facts in replayed] == list(range(len(given)))
    assert {(facts.timestamp_ms, facts.producer_id) for _, facts in replayed} == {(1000, 7)}


@pytest.mark.parametrize("length", [b"\x01", b"\x09", b"\x7e"])
def test_a_record_that_ends_before_it_begins_or_behind_its_batch_is_corrupt(length: bytes) -> None:
    """Believed, a negative length would have the same bytes replayed as another record."""
    batch = bytearray(encode_batch([CoordinatorRecord(b"key", b"value")] * 2, 1000))
    batch[HEADER_SIZE : HEADER_SIZE + 1] = length
    with pytest.raises(CorruptMessage):
        list(records_in(bytes(batch), 0, read_header(batch)))
