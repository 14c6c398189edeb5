"""Lines cut from chunks, and the records that they become."""

import os
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.line_shapes import (
    LineShape,
    LineSplitter,
    pair_of,
    read_lines,
    record_of,
    send_lines,
)
from headrace.client.bulk import RecordProducer
from headrace.client.records import OutgoingRecord
from headrace.errors import HeadraceError


class Sink:
    """Notes what would be sent."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.shared: Any = None

    def send_values(self, values: list[bytes | None], partition: int) -> None:
        self.sent += values

    def send_pairs(
        self,
        pairs: list[tuple[bytes | None, bytes | None]],
        partition: int,
        headers: tuple[tuple[str, bytes | None], ...],
        timestamp_ms: int,
    ) -> None:
        self.sent += pairs
        self.shared = (partition, headers, timestamp_ms)

    def send(self, records: list[OutgoingRecord]) -> None:
        self.sent += records


def sent(shape: LineShape, *lines: bytes) -> list[Any]:
    sink = Sink()
    send_lines(cast(RecordProducer, sink), shape, list(lines))
    return sink.sent


def test_a_line_is_a_value() -> None:
    assert sent(LineShape(), b"one", b"") == [b"one", b""]


def test_a_separator_splits_key_and_value_once() -> None:
    assert sent(LineShape(key_separator=b":"), b"k:v:w", b":v") == [(b"k", b"v:w"), (b"", b"v")]


def test_a_line_without_separator_is_refused() -> None:
    with pytest.raises(HeadraceError, match="no key separator ':' in 'keyless'"):
        pair_of(b"keyless", LineShape(key_separator=b":"))


def test_lines_before_a_bad_one_are_sent() -> None:
    sink = Sink()
    with pytest.raises(HeadraceError):
        send_lines(
            cast(RecordProducer, sink), LineShape(key_separator=b":"), [b"a:1", b"b", b"c:3"]
        )
    assert sink.sent == [(b"a", b"1")]


def test_the_null_marker_makes_tombstones() -> None:
    assert sent(LineShape(null_marker=b"NULL"), b"NULL", b"x") == [None, b"x"]
    shape = LineShape(key_separator=b":", null_marker=b"NULL")
    assert sent(shape, b"k:NULL", b"NULL:v") == [(b"k", None), (None, b"v")]


def test_headers_and_time_come_with_every_record() -> None:
    sink = Sink()
    shape = LineShape(key=b"k", headers=(("a", b"b"),), timestamp_ms=7, partition=2)
    send_lines(cast(RecordProducer, sink), shape, [b"v"])
    assert sink.sent == [(b"k", b"v")]
    assert sink.shared == (2, (("a", b"b"),), 7)


def test_the_command_line_precedes_a_json_record() -> None:
    line = b'{"partition": 1, "timestamp": 5, "key": "old", "value": "v", "headers": [["x", "y"]]}'
    plain = record_of(line, LineShape(from_json=True))
    assert plain == OutgoingRecord(b"v", b"old", (("x", b"y"),), 5, 1)
    shape = LineShape(
        from_json=True, key=b"new", partition=3, timestamp_ms=9, headers=(("a", b"b"),)
    )
    changed = OutgoingRecord(b"v", b"new", (("x", b"y"), ("a", b"b")), 9, 3)
    assert record_of(line, shape) == changed


def test_a_json_record_may_leave_its_partition_to_its_key() -> None:
    line = b'{"partition": 1, "key": "k", "value": "v"}'
    assert record_of(line, LineShape(from_json=True, repartition=True)).partition == -1
    assert record_of(line, LineShape(from_json=True, repartition=True, partition=2)).partition == 2


@given(
    lines=st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line)),
    sizes=st.lists(st.integers(1, 30), min_size=1),
)
def test_chunks_of_any_size_give_the_same_lines(lines: list[bytes], sizes: list[int]) -> None:
    content = b"".join(line + b"\n" for line in lines)
    splitter = LineSplitter()
    found: list[bytes] = []
    turn = 0
    while content:
        size = sizes[turn % len(sizes)]
        found += splitter.push(content[:size])
        content = content[size:]
        turn += 1
    assert found + splitter.finish() == lines


def test_a_last_line_needs_no_newline() -> None:
    splitter = LineSplitter()
    assert splitter.push(b"one\ntwo") == [b"one"]
    assert splitter.finish() == [b"two"]
    assert splitter.finish() == []


def test_an_empty_line_is_a_line() -> None:
    assert LineSplitter().push(b"\n\nx\n") == [b"", b"", b"x"]


def test_reading_calls_back_while_the_input_is_idle() -> None:
    source, sink = os.pipe()

    def write_and_leave() -> None:
        os.write(sink, b"a\nb")
        os.close(sink)

    assert list(read_lines(source, write_and_leave, interval_s=0.01)) == [[b"a"], [b"b"]]
    os.close(source)
