"""Small compacted logs, cleaned at a word, for the tests of compaction."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from headrace.protocol.batches import Record, build_batch, headers, records_of
from headrace.storage.appending import append_as_is
from headrace.storage.compaction.cleaner import Cleaner
from headrace.storage.config import LogConfig
from headrace.storage.log import Log
from headrace.storage.topic_partition import TopicPartition

T = TypeVar("T")

NOW = 1_700_000_000_000
COMPACTED = LogConfig(cleanup_policy=frozenset(("compact",)), min_cleanable_dirty_ratio=0.0)
PARTITION = TopicPartition("tables", 0)


class Settings(msgspec.Struct, frozen=True):
    """The broker's settings that the cleaner uses."""

    log_cleaner_threads: int = 1
    log_cleaner_dedupe_buffer_size: int = 128 << 20
    log_cleaner_io_buffer_load_factor: float = 0.9
    log_cleaner_io_max_bytes_per_second: float = 1e300


async def at_once(function: Callable[..., T], *args: Any) -> T:
    """A background without threads."""
    return function(*args)


def cleaner(**settings: Any) -> Cleaner:
    return Cleaner(Settings(**settings), at_once)


def new_log(directory: Path, config: LogConfig = COMPACTED) -> Log:
    return Log.create(PARTITION, str(directory / "tables-0"), config)


def record(offset: int, key: str, value: str | None, timestamp: int = NOW) -> Record:
    return Record(offset, timestamp, key.encode(), None if value is None else value.encode())


def append(log: Log, *records: Record, **options: Any) -> None:
    """One batch, with the offsets that its records have."""
    append_as_is(log, memoryview(build_batch(records, **options)))
    log.advance_high_watermark(log.log_end_offset)


def write(log: Log, pairs: Iterable[tuple[str, str | None]], timestamp: int = NOW) -> None:
    """One batch of keys and values at the end of the log."""
    records = [
        record(log.log_end_offset + at, key, value, timestamp)
        for at, (key, value) in enumerate(pairs)
    ]
    append(log, *records)


def clean(log: Log, now_ms: int = NOW, **settings: Any) -> bool:
    return run(cleaner(**settings).run([log], now_ms))


def run(work: Awaitable[T]) -> T:
    async def awaited() -> T:
        return await work

    return asyncio.run(awaited())


def batches_of(log: Log) -> list[bytes]:
    """The batches of a log as its segments hold them."""
    found = []
    for segment in log.segments:
        content = Path(segment.path(".log")).read_bytes()
        assert len(content) == segment.size
        found += [
            content[position : position + header.size] for position, header in headers(content)
        ]
    return found


def records_in(log: Log) -> list[Record]:
    return [record for batch in batches_of(log) for record in records_of(batch)]


def pairs_in(log: Log) -> list[tuple[int, str, str | None]]:
    """Offset, key and value of each record."""
    return [
        (
            record.offset,
            (record.key or b"").decode(),
            None if record.value is None else record.value.decode(),
        )
        for record in records_in(log)
    ]


def base_offsets(log: Log) -> Sequence[int]:
    return [segment.base_offset for segment in log.segments]
