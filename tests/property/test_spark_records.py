"""Both twins of the Spark source's decoder against `records_of`: the same records, or an error."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import CorruptMessage
from headrace.protocol.batches import Record, build_batch, read_header, records_of, seal
from headrace.protocol.compression import Codec
from headrace.spark.source import compiled, plain
from headrace.spark.source.errors import DamagedRecords
from headrace.spark.source.record_columns import TIMESTAMP_MS_MAX, Decode, RecordColumns, Wanted
from headrace.spark.source.record_sets import chunks, walk

EVERYTHING = Wanted(keys=True, values=True, headers=True)
TWINS = pytest.mark.parametrize(
    "decode", [plain.decode, compiled.decode], ids=["plain", "compiled"]
)

texts = st.text(st.characters(codec="utf-8"), max_size=8)
payloads = st.none() | st.binary(max_size=200)
header_lists = st.lists(st.tuples(texts, payloads), max_size=3).map(tuple)
moments = st.integers(-1, 4_000_000_000_000)
bodies = st.tuples(moments, payloads, payloads, header_lists)
codecs = st.sampled_from(list(Codec))


def records_from(offset: int, drawn: list[Any]) -> list[Record]:
    return [
        Record(offset + index, moment, key, value, found)
        for index, (moment, key, value, found) in enumerate(drawn)
    ]


def decoded(decode: Decode, data: bytearray, first: int, end: int) -> list[Record]:
    view = memoryview(data)
    walked = walk("t-0", view, first, end)
    records: list[Record] = []
    for chunk in chunks("t-0", view, walked.batches, checks_crcs=False):
        records += rows(decode(chunk, first, end, EVERYTHING))
    return records


def rows(columns: RecordColumns) -> list[Record]:
    for column in (columns.keys, columns.values, columns.headers, columns.timestamps):
        column.validate(full=True)
    times = columns.timestamps.cast("int64").to_pylist()
    found = [columns.offsets, columns.keys, columns.values, columns.headers]
    return [
        Record(offset, time // 1000, key, value, pairs(headers))
        for time, offset, key, value, headers in zip(
            times, *(column.to_pylist() for column in found), strict=True
        )
    ]


def pairs(headers: list[dict[str, Any]] | None) -> tuple[tuple[str, bytes | None], ...]:
    return tuple((one["key"], one["value"]) for one in headers or ())


@TWINS
@given(
    batches=st.lists(st.tuples(st.lists(bodies, min_size=1, max_size=20), codecs), min_size=1),
    bounds=st.tuples(st.integers(0, 60), st.integers(0, 60)),
)
@settings(max_examples=60, deadline=None)
def test_records_round_trip(decode: Decode, batches: list[Any], bounds: tuple[int, int]) -> None:
    first, end = min(bounds), max(bounds)
    data = bytearray()
    expected: list[Record] = []
    for drawn, codec in batches:
        records = records_from(expected[-1].offset + 1 if expected else 0, drawn)
        data += build_batch(records, codec=codec)
        expected += records
    wanted = [record for record in expected if first <= record.offset < end]
    assert decoded(decode, data, first, end) == wanted


@TWINS
@given(drawn=st.lists(bodies, min_size=1, max_size=5), data=st.data())
@settings(max_examples=300, deadline=None)
def test_damaged_bytes_decode_as_in_the_reference_or_fail(
    decode: Decode, drawn: list[Any], data: st.DataObject
) -> None:
    batch = build_batch(records_from(3, drawn))
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(27, len(batch) - 1))
        batch[position] = data.draw(st.integers(0, 255))
    seal(batch)
    try:
        expected: list[Record] | None = [
            record for record in records_of(batch) if record.offset < 1 << 40
        ]
    except CorruptMessage:
        expected = None
    if expected is None:
        with pytest.raises(DamagedRecords):
            decoded(decode, batch, -(1 << 40), 1 << 40)
    else:
        assert [near(one) for one in decoded(decode, batch, -(1 << 40), 1 << 40)] == [
            near(one) for one in expected
        ]


def near(record: Record) -> Record:
    """Times beyond the last by which a table can be parted into days are cut to that."""
    limit = TIMESTAMP_MS_MAX
    return Record(
        record.offset,
        max(-limit, min(record.timestamp, limit)),
        record.key,
        record.value,
        record.headers,
    )


@given(noise=st.binary(max_size=300), count=st.integers(-3, 60))
@settings(max_examples=300, deadline=None)
def test_noise_in_the_place_of_records_is_an_error_for_both(noise: bytes, count: int) -> None:
    batch = build_batch([Record(0, 0)])[:61] + noise
    header = read_header(batch)
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[57:61] = count.to_bytes(4, "big", signed=True)
    assert header.count == 1
    results = []
    for decode in (plain.decode, compiled.decode):
        try:
            results.append([near(one) for one in decoded(decode, batch, -(1 << 40), 1 << 40)])
        except DamagedRecords:
            results.append([])
    assert results[0] == results[1]
