"""Files of a log made readable, damaged ones too."""

import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.batch_text import BatchEntry, PaddingEntry, ProblemEntry, dump_batches
from headrace.cli.log import list_segments
from headrace.cli.log_files import dump_file
from headrace.cli.main import main
from headrace.errors import HeadraceError
from headrace.protocol.batches import Record, build_batch
from headrace.protocol.compression import Codec
from headrace.protocol.metadata_records import encode_metadata_record
from headrace.protocol.schemas.records.metadata import TopicRecord
from headrace.storage import producer_snapshots
from headrace.storage.producer_state import Producer, RememberedBatch

SEGMENT = "00000000000000000100.log"


def batch(*values: bytes, offset: int = 100, **options: Any) -> bytes:
    records = [
        Record(offset + index, 1_767_225_600_000 + index, b"k", value, (("h", b"x"),))
        for index, value in enumerate(values)
    ]
    return bytes(build_batch(records, **options))


def entries(path: Path, *, show_records: bool = False) -> list[Any]:
    return list(dump_file(path, show_records=show_records))


def written(directory: Path, name: str, content: bytes) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_bytes(content)
    return path


def test_a_batch_shows_magic_checksum_codec_and_size(tmp_path: Path) -> None:
    """LOG-2: a dump tool shows batch magic, CRC, codec, size."""
    content = batch(b"a" * 100, b"b" * 100, codec=Codec.ZSTD, leader_epoch=7)
    (entry,) = entries(written(tmp_path, SEGMENT, content))
    assert (entry.magic, entry.codec, entry.size_bytes) == (2, "zstd", len(content))
    assert (entry.base_offset, entry.last_offset, entry.count) == (100, 101, 2)
    assert entry.is_valid
    assert entry.crc == content[17:21].hex()
    assert "magic 2  crc" in entry.text()
    assert entry.records is None


def test_records_are_shown_on_demand(tmp_path: Path) -> None:
    path = written(tmp_path, SEGMENT, batch(b"text", b"\xff", codec=Codec.GZIP))
    (entry,) = entries(path, show_records=True)
    assert [record.offset for record in entry.records] == [100, 101]
    assert entry.records[0].text() == (
        '  offset 100  2026-01-01T00:00:00.000Z  key "k"  value "text"  header h="x"'
    )
    assert entry.records[1].value == {"base64": "/w=="}


def test_a_wrong_checksum_is_named_and_later_batches_are_shown(tmp_path: Path) -> None:
    damaged = bytearray(batch(b"a") + batch(b"b", offset=101))
    damaged[62] ^= 1
    first, second = entries(written(tmp_path, SEGMENT, bytes(damaged)))
    assert (first.is_valid, second.is_valid) == (False, True)
    assert "INVALID" in first.text()


def test_a_torn_tail_is_named(tmp_path: Path) -> None:
    whole = batch(b"a") + batch(b"b", offset=101)
    entry, problem = entries(written(tmp_path, SEGMENT, whole[:-5]))
    assert entry.is_valid
    assert problem.problem == "the batch lacks its last 5 bytes"
    assert problem.position == len(batch(b"a"))


def test_reserved_space_is_no_damage(tmp_path: Path) -> None:
    _, padding = entries(written(tmp_path, SEGMENT, batch(b"a") + bytes(1000)))
    assert isinstance(padding, PaddingEntry)


@given(content=st.binary(max_size=200), show_records=st.booleans(), is_metadata=st.booleans())
def test_any_bytes_can_be_dumped(content: bytes, show_records: bool, is_metadata: bool) -> None:
    for prefix in (b"", batch(b"a")):
        dumped = dump_batches(prefix + content, show_records=show_records, is_metadata=is_metadata)
        assert all(entry.text() for entry in dumped)


@given(position=st.integers(0, 200), change=st.integers(1, 255))
def test_a_flipped_byte_is_detected_or_harmless(position: int, change: int) -> None:
    """Only base offset and leader epoch stand outside the checksum."""
    content = bytearray(batch(b"a" * 150))
    content[position] ^= change
    bad = [
        entry
        for entry in dump_batches(bytes(content), show_records=True)
        if isinstance(entry, ProblemEntry)
        or (isinstance(entry, BatchEntry) and (entry.problem or not entry.is_valid))
    ]
    assert bool(bad) == (not (position < 8 or 12 <= position < 16))


def test_metadata_records_are_decoded(tmp_path: Path) -> None:
    value = encode_metadata_record(TopicRecord(name="orders", topic_id=bytes(15) + b"\x05"), 0)
    path = written(tmp_path / "__cluster_metadata-0", "00000000000000000000.log", batch(value))
    (entry,) = entries(path, show_records=True)
    assert entry.records[0].value == {
        "type": "TopicRecord",
        "version": 0,
        "name": "orders",
        "topic_id": "AAAAAAAAAAAAAAAAAAAABQ",
    }


def test_control_records_are_named(tmp_path: Path) -> None:
    marker = Record(100, 5, struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 9))
    content = bytes(build_batch([marker], control=True, transactional=True, producer_id=4))
    (entry,) = entries(written(tmp_path, SEGMENT, content), show_records=True)
    assert (entry.records[0].key, entry.records[0].value) == ("COMMIT", {"coordinator_epoch": 9})
    assert entry.text().splitlines()[0].endswith("transactional  control")


def test_entries_of_an_index_are_checked_against_its_segment(tmp_path: Path) -> None:
    first = batch(b"a")
    written(tmp_path, SEGMENT, first + batch(b"b", offset=101))
    index = struct.pack(">iiii", 1, len(first), 7, 3) + bytes(16)
    right, wrong, padding = entries(written(tmp_path, "00000000000000000100.index", index))
    assert (right.offset, right.position, right.is_valid) == (101, len(first), True)
    assert (wrong.offset, wrong.is_valid) == (107, False)
    assert padding.size_bytes == 16


def test_entries_of_a_time_index_have_times_and_offsets(tmp_path: Path) -> None:
    content = struct.pack(">qi", 1_767_225_600_000, 5)
    (entry,) = entries(written(tmp_path, "00000000000000000100.timeindex", content + b"x"))[:1]
    assert entry.text() == "time 2026-01-01T00:00:00.000Z (1767225600000)  offset 105"
    assert isinstance(entries(tmp_path / "00000000000000000100.timeindex")[-1], ProblemEntry)


def test_entries_of_a_producer_snapshot_are_its_producers(tmp_path: Path) -> None:
    producer = Producer(4, 2)
    producer.batches.append(RememberedBatch(9, 50, 0, 1_767_225_600_000))
    path = written(tmp_path, "00000000000000000100.snapshot", producer_snapshots.encode([producer]))
    (entry,) = entries(path)
    assert (entry.producer_id, entry.producer_epoch, entry.last_sequence) == (4, 2, 9)
    path.write_bytes(b"\x00\x01garbage")
    assert isinstance(entries(path)[0], ProblemEntry)


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        (
            "replication-offset-checkpoint",
            b"0\n1\norders 0 7\n",
            "topic orders  partition 0  offset 7",
        ),
        ("leader-epoch-checkpoint", b"0\n1\n3 70\n", "epoch 3  start_offset 70"),
        ("partition.metadata", b"version: 0", "version 0"),
        ("meta.properties", b"#when\nnode.id=1\n", "node.id 1"),
        ("quorum-state", b'{"leaderId":1}', "leaderId 1"),
        ("recovery-point-offset-checkpoint", b"0\n5\n", "position 0  PROBLEM: it announces"),
    ],
)
def test_small_files_are_shown_in_fields(
    tmp_path: Path, name: str, content: bytes, line: str
) -> None:
    (entry,) = entries(written(tmp_path, name, content))
    assert entry.text().startswith(line)


def test_files_marked_for_deletion_are_read(tmp_path: Path) -> None:
    (entry,) = entries(written(tmp_path, SEGMENT + ".deleted", batch(b"a")))
    assert entry.base_offset == 100


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HeadraceError, match="not a file of a log"):
        dump_file(written(tmp_path, "notes.txt", b"x"), show_records=False)


def test_dump_exits_with_1_on_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, SEGMENT, batch(b"a"))
    assert main(["log", "dump", str(path)]) == 0
    path.write_bytes(batch(b"a")[:-1])
    assert main(["log", "dump", "--json", str(path)]) == 1
    assert '"entry":"problem"' in capsys.readouterr().out


def test_segments_are_listed_with_base_offsets_and_sizes(tmp_path: Path) -> None:
    """LOG-12: a partition is a directory of segments; listing shows base offsets and sizes."""
    written(tmp_path, SEGMENT, batch(b"a"))
    written(tmp_path, "00000000000000000000.log", b"")
    written(tmp_path, "00000000000000000000.index", bytes(8))
    listed = [(one.base_offset, one.size_bytes, one.index_bytes) for one in list_segments(tmp_path)]
    assert listed == [(0, 0, 8), (100, len(batch(b"a")), 0)]
