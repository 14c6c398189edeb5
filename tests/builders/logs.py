"""Logs to test with: built in a line, filled in a line, opened again as after a stop or a crash."""

import os
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from headrace.protocol.batches import Record, build_batch, headers, records_of
from headrace.runtime import files
from headrace.storage.appending import AppendInfo, append_as_leader
from headrace.storage.config import LogConfig
from headrace.storage.log import Log
from headrace.storage.producer_state import Origin
from headrace.storage.recovery import load_log
from headrace.storage.resources import Resources
from headrace.storage.segment import LOG
from headrace.storage.topic_partition import TopicPartition

NOW = 1_700_000_000_000
PARTITION = TopicPartition("orders", 0)
TOPIC_ID = bytes(range(16))
EVERYTHING = 1 << 40
_LENGTH_POSITION = 8


@contextmanager
def fresh_directories() -> Iterator[Iterator[Path]]:
    """A new directory for each example of a property, on a disk whose syncs cost nothing."""
    memory = "/dev/shm"
    root = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=root) as path, pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "fsync", lambda fd: None)
        yield (_made(Path(path) / str(number)) for number in count())


def _made(path: Path) -> Path:
    path.mkdir()
    return path


def new_log(directory: Path, **config: Any) -> Log:
    return Log.create(
        PARTITION, str(directory / str(PARTITION)), LogConfig(**config), topic_id=TOPIC_ID
    )


def reopened(log: Log, *, clean: bool = False, **offsets: Any) -> Log:
    """The log as the next process finds it: after a crash, or after it was closed."""
    if clean:
        log.close()
        offsets.setdefault("recovery_point", log.recovery_point)
    offsets.setdefault("high_watermark", log.high_watermark)
    offsets.setdefault("log_start_offset", log.log_start_offset)
    return load_log(
        log.topic_partition, log.directory, log.config, Resources(), clean=clean, **offsets
    )


def batch_of(*values: bytes, timestamps: int | list[int] = NOW, **fields: Any) -> memoryview:
    """A batch as a producer sends it, in a buffer that a broker may write to."""
    if isinstance(timestamps, int):
        timestamps = [timestamps] * len(values)
    records = [
        Record(offset, timestamp, b"key", value)
        for offset, (value, timestamp) in enumerate(zip(values, timestamps, strict=True))
    ]
    return memoryview(build_batch(records, **fields))


def append(
    log: Log,
    *values: bytes,
    timestamps: int | list[int] = NOW,
    leader_epoch: int = 0,
    origin: Origin = Origin.CLIENT,
    now_ms: int = NOW,
    transaction_version: int = 0,
    **fields: Any,
) -> AppendInfo:
    """Append a batch and commit it, as a partition with one replica does."""
    batch = batch_of(*(values or (b"value",)), timestamps=timestamps, **fields)
    info = append_as_leader(log, batch, leader_epoch, now_ms, origin, transaction_version)
    log.advance_high_watermark(log.log_end_offset)
    return info


def damage_length(log: Log, position: int, length: int) -> None:
    """Overwrite the length of the batch at a position of the active segment, behind its back."""
    with open(log.segments[-1].path(LOG), "r+b") as file:
        file.seek(position + _LENGTH_POSITION)
        file.write(struct.pack(">i", length))


def sequenced(log: Log, sequence: int, count: int = 1, **fields: Any) -> AppendInfo:
    """Append a batch of the idempotent producer 7."""
    fields = {"producer_id": 7, "producer_epoch": 0, **fields}
    return append(log, *[b"value"] * count, base_sequence=sequence, **fields)


def slices(log: Log, offset: int | None = None, size_max: int = EVERYTHING) -> Iterator[bytes]:
    """The bytes that a consumer gets, fetch by fetch, up to the high watermark."""
    offset = log.log_start_offset if offset is None else offset
    while offset < log.high_watermark:
        data = log.read(offset, size_max, log.high_watermark).read()
        assert data, f"nothing at {offset}, before the end"
        yield data
        for _, header in headers(data):
            offset = header.next_offset


def records_in(data: bytes) -> list[Record]:
    return [record for position, _ in headers(data) for record in records_of(data, position)]


def all_records(log: Log, offset: int | None = None, size_max: int = EVERYTHING) -> list[Record]:
    found = [record for data in slices(log, offset, size_max) for record in records_in(data)]
    start = log.log_start_offset if offset is None else offset
    return [record for record in found if record.offset >= start]


def values_of(log: Log) -> list[bytes | None]:
    return [record.value for record in all_records(log)]


def stored(log: Log) -> bytes:
    """All that the log files hold."""
    return b"".join(Path(segment.path(".log")).read_bytes() for segment in log.segments)


def names_in(log: Log) -> set[str]:
    """The files in the log's directory."""
    return {path.name for path in Path(log.directory).iterdir()}
