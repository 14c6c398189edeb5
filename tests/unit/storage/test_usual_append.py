"""The quick append leaves exactly what the long one leaves, or nothing at all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headrace.protocol.batches import HEADER, Record, build_batch, seal
from headrace.protocol.compression import Codec
from headrace.storage.appending import append_as_leader
from headrace.storage.config import LogConfig
from headrace.storage.log import Log
from headrace.storage.topic_partition import TopicPartition
from headrace.storage.usual_append import NOT_USUAL, Run, append_run, append_usual
from headrace.storage.validation import read_usual
from tests.builders.failing_disk import failing_writes

NOW_MS = 1_700_000_000_000
EPOCH = 3


def log_at_work(path: Path, **config: Any) -> Log:
    """A log with one batch in it, so that segment, epoch and clock are set."""
    log = Log.create(TopicPartition("orders", 0), str(path), LogConfig(**config))
    append_as_leader(log, batch(1), EPOCH, NOW_MS)
    return log


def batch(count: int, size: int = 100, *, at_ms: int = NOW_MS, **fields: Any) -> memoryview:
    records = [
        Record(offset=n, timestamp=at_ms + n, key=None, value=b"v" * size) for n in range(count)
    ]
    return memoryview(build_batch(records, **fields))


def patched(field: int, value: int) -> memoryview:
    """A sealed batch with one field of its header changed."""
    data = batch(2)
    fields = list(HEADER.unpack_from(data))
    fields[field] = value
    HEADER.pack_into(data, 0, *fields)
    seal(data)
    return data


def files_of(log: Log) -> dict[str, bytes]:
    log.close()
    return {path.name: path.read_bytes() for path in sorted(Path(log.directory).iterdir())}


def test_both_ways_leave_the_same_files(tmp_path: Path) -> None:
    quick = log_at_work(tmp_path / "quick")
    long = log_at_work(tmp_path / "long")
    for n in range(1, 200):
        for codec in (Codec.NONE, Codec.ZSTD):
            at_ms = NOW_MS + (n * 37 % 11) * 100
            base = append_usual(quick, batch(n % 7 + 1, n, at_ms=at_ms, codec=codec), EPOCH, NOW_MS)
            again = batch(n % 7 + 1, n, at_ms=at_ms, codec=codec)
            assert base == append_as_leader(long, again, EPOCH, NOW_MS).base_offset
    assert quick.log_end_offset == long.log_end_offset
    assert files_of(quick) == files_of(long)


def but_for_the_epoch(data: memoryview) -> bytes:
    """Return the bytes that a retry needs unchanged; the leader epoch is patched anyway."""
    return bytes(data[:12]) + bytes(data[16:])


def runs() -> Iterator[list[memoryview]]:
    """Batches as producers of a round might bring them: few or many, some with older records."""
    for n in range(1, 60):
        yield [
            batch((n + i) % 5 + 1, 7 * i + n, at_ms=NOW_MS + (n * 37 + i * 53) % 110 * 10)
            for i in range(n % 9 + 1)
        ]


@dataclass
class Batch:
    records: memoryview
    count: int
    max_timestamp: int
    base_offset: int = -1


def read_run(log: Log, records: Sequence[memoryview]) -> Run[Batch]:
    found = [(one, read_usual(one, log.usual_limits, NOW_MS)) for one in records]
    first, *others = [Batch(one, *usual) for one, usual in found if usual is not None]
    run = Run(first)
    for other in others:
        run.add(other)
    return run


@pytest.mark.parametrize("config", [{}, {"index_interval_bytes": 100}])
def test_a_run_leaves_the_same_files_as_batch_after_batch(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    together = log_at_work(tmp_path / "together", **config)
    apart = log_at_work(tmp_path / "apart", **config)
    for once, again in zip(runs(), runs(), strict=True):
        run = read_run(together, once)
        assert append_run(together, run, EPOCH)
        offsets = [append_as_leader(apart, one, EPOCH, NOW_MS).base_offset for one in again]
        assert [one.base_offset for one in run.batches] == offsets
    assert together.log_end_offset == apart.log_end_offset
    assert together.max_timestamp() == apart.max_timestamp()
    assert files_of(together) == files_of(apart)


def test_a_run_that_would_overfill_the_index_uses_the_general_path(tmp_path: Path) -> None:
    """Each of its batches may need an entry, and one place is Kafka's for the end."""
    log = log_at_work(tmp_path / "log", index_interval_bytes=10, segment_index_bytes=100)
    assert append_run(log, read_run(log, [batch(1) for _ in range(3)]), EPOCH)
    run = read_run(log, [batch(1) for _ in range(9)])
    assert not append_run(log, run, EPOCH)
    assert log.log_end_offset == 4


@pytest.mark.parametrize("after_bytes", [0, 50, 250])
def test_a_run_without_space_on_disk_leaves_no_bytes(tmp_path: Path, after_bytes: int) -> None:
    log, records = log_at_work(tmp_path / "log"), [batch(1), batch(2), batch(1)]
    before, size = [but_for_the_epoch(one) for one in records], log.segments[-1].size
    with failing_writes(after_bytes=after_bytes):
        assert not append_run(log, read_run(log, records), EPOCH)
    assert [but_for_the_epoch(one) for one in records] == before
    assert (log.log_end_offset, log.segments[-1].size) == (1, size)
    assert Path(log.segments[-1].path(".log")).stat().st_size == size
    assert append_run(log, read_run(log, records), EPOCH)
    assert log.log_end_offset == 5


@pytest.mark.parametrize(
    "unusual",
    [
        pytest.param(batch(2, producer_id=7, producer_epoch=0, base_sequence=0), id="idempotent"),
        pytest.param(batch(2, at_ms=NOW_MS + 10**9), id="from the future"),
        pytest.param(batch(2)[:60], id="cut off"),
        pytest.param(memoryview(bytes(batch(2)) + b"more"), id="more than one batch"),
        pytest.param(patched(0, 5), id="offset given"),
        pytest.param(patched(3, 1), id="old format"),
        pytest.param(patched(5, 0x20), id="control batch"),
        pytest.param(patched(5, 0x10), id="transactional"),
        pytest.param(patched(5, 7), id="unknown codec"),
        pytest.param(patched(6, 5), id="wrong last offset"),
        pytest.param(patched(12, 10_000), id="too many records claimed"),
        pytest.param(patched(12, 0), id="no record"),
        pytest.param(patched(8, 0), id="latest timestamp before the first"),
    ],
)
def test_an_unusual_batch_is_left_to_the_general_path(tmp_path: Path, unusual: memoryview) -> None:
    log = log_at_work(tmp_path / "log")
    before, size = bytes(unusual), log.segments[-1].size
    assert append_usual(log, unusual, EPOCH, NOW_MS) == NOT_USUAL
    assert (bytes(unusual), log.segments[-1].size, log.log_end_offset) == (before, size, 1)


def test_a_wrong_checksum_is_left_to_the_general_path(tmp_path: Path) -> None:
    log, damaged = log_at_work(tmp_path / "log"), batch(2)
    damaged[-1] ^= 1
    assert append_usual(log, damaged, EPOCH, NOW_MS) == NOT_USUAL


@pytest.mark.parametrize(
    "config",
    [
        {"cleanup_policy": frozenset(("compact",))},
        {"message_timestamp_type": "LogAppendTime"},
        {"compression_type": "zstd"},
        {"max_message_bytes": 100},
    ],
)
def test_a_topic_with_its_own_rules_uses_the_general_path(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    log = log_at_work(tmp_path / "log")
    log.reconfigure(LogConfig(**config))
    assert append_usual(log, batch(2), EPOCH, NOW_MS) == NOT_USUAL


def test_first_batches_full_segments_and_new_epochs_use_the_general_path(tmp_path: Path) -> None:
    fresh = Log.create(TopicPartition("orders", 0), str(tmp_path / "fresh"), LogConfig())
    assert append_usual(fresh, batch(1), EPOCH, NOW_MS) == NOT_USUAL
    full = log_at_work(tmp_path / "full", segment_bytes=300)
    assert append_usual(full, batch(1), EPOCH, NOW_MS) == NOT_USUAL
    led = log_at_work(tmp_path / "led")
    assert append_usual(led, batch(1), EPOCH + 1, NOW_MS) == NOT_USUAL
    stale = log_at_work(tmp_path / "stale", segment_ms=1000)
    assert append_usual(stale, batch(1, at_ms=NOW_MS + 2000), EPOCH, NOW_MS) == NOT_USUAL


def test_a_full_disk_leaves_log_and_batch_as_they_were(tmp_path: Path) -> None:
    log, refused = log_at_work(tmp_path / "log"), batch(2)
    before = but_for_the_epoch(refused)
    with failing_writes():
        assert append_usual(log, refused, EPOCH, NOW_MS) == NOT_USUAL
    assert (but_for_the_epoch(refused), log.log_end_offset) == (before, 1)
    assert append_usual(log, refused, EPOCH, NOW_MS) == 1
