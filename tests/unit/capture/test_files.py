"""Files of captured records, and how large they get."""

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Message

from headrace.capture import files
from headrace.capture.capturing import Capture, Captured
from headrace.capture.files import CaptureFile, size_of
from headrace.capture.windows import Limits
from tests.builders.captures import Runs, record

MEGABYTE = 1_000_000


def captured(directory: Path, suffix: str, runs: Sequence[Sequence[Message]]) -> list[Captured]:
    """All files of a capture with files of at most a megabyte."""
    done: list[Captured] = []
    Capture(
        Runs(runs),  # type: ignore[arg-type]  # All of a reader that a capture uses.
        directory,
        suffix,
        Limits(3_600_000, MEGABYTE),
        report=lambda _: None,
        done=done.append,
    ).run(once=True, is_stopped=lambda: False)
    return done


def test_a_record_s_headers_count_towards_its_size() -> None:
    plain = size_of(record(0, b"value"))
    assert size_of(record(0, b"value", [("trace", b"x" * 1000), ("n", None)])) - plain >= 1006


@pytest.mark.parametrize("suffix", ["avro", "parquet"])
@pytest.mark.parametrize("is_in_headers", [False, True])
def test_no_file_exceeds_its_size_for_any_order_of_records(
    tmp_path: Path, suffix: str, is_in_headers: bool
) -> None:
    """CLD-1: Runs of 900 kB each, of which no second has room in a file of a megabyte."""
    bodies = [os.urandom(9_000) for _ in range(500)]
    records = [
        record(offset, b"", [("h", body)]) if is_in_headers else record(offset, body)
        for offset, body in enumerate(bodies)
    ]
    done = captured(tmp_path, suffix, [records[at : at + 100] for at in range(0, 500, 100)])
    assert sum(one.records for one in done) == 500
    assert max(one.path.stat().st_size for one in done) <= MEGABYTE * 1.02
    assert len(done) == 5


def test_headers_count_towards_the_size_of_a_row_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "ROW_GROUP_BYTES", 100_000)
    file = CaptureFile(tmp_path, 0, "parquet")
    for offset in range(100):
        file.write([record(offset, b"", [("h", os.urandom(10_000))])])
    path = file.complete("whole.parquet")
    assert pq.ParquetFile(path).metadata.num_row_groups == 10
