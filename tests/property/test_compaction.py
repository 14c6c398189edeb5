"""Compacted logs against a dictionary: the last value of each key is there, whatever happened."""

import tempfile
from pathlib import Path

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.protocol.batches import Record, build_batch
from headrace.storage.config import LogConfig
from headrace.storage.log import Log
from headrace.storage.recovery import load_log
from tests.builders.compacted_logs import (
    COMPACTED,
    NOW,
    PARTITION,
    append,
    cleaner,
    records_in,
    run,
)

HOUR = 3_600_000
CONFIG = msgspec.structs.replace(COMPACTED, delete_retention_ms=HOUR, index_interval_bytes=100)

keys = st.binary(max_size=2)
values = st.none() | st.binary(max_size=30)
writes = st.lists(st.tuples(keys, values), min_size=1, max_size=8)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), writes, st.integers(0, 4)),
        st.tuples(st.just("gap"), st.integers(1, 50)),
        st.tuples(st.just("roll")),
        st.tuples(st.just("clean"), st.integers(0, 2)),
        st.tuples(st.just("restart")),
    ),
    min_size=1,
    max_size=25,
)


@settings(max_examples=150)
@given(
    steps=steps,
    map_bytes=st.sampled_from([64, 1 << 20]),
    segment_bytes=st.sampled_from([300, 2_000, 1 << 20]),
)
def test_a_reader_from_the_start_gets_the_final_state(
    steps: list[tuple[object, ...]], map_bytes: int, segment_bytes: int
) -> None:
    """RET-4, RET-5: values of all keys, in the order and at the offsets they were written."""
    with tempfile.TemporaryDirectory() as directory:
        world = World(Path(directory), map_bytes, segment_bytes)
        for name, *arguments in [*steps, ("roll",), ("clean", 0), ("restart",)]:
            getattr(world, str(name))(*arguments)
            world.check()


class World:
    """A log and what must be in it."""

    def __init__(self, directory: Path, map_bytes: int, segment_bytes: int) -> None:
        self.config: LogConfig = msgspec.structs.replace(CONFIG, segment_bytes=segment_bytes)
        self.log = Log.create(PARTITION, str(directory / "tables-0"), self.config)
        self.cleaner = cleaner(log_cleaner_dedupe_buffer_size=map_bytes)
        self.now = NOW
        self.written: dict[int, Record] = {}
        self.next_offset = 0

    def write(self, pairs: list[tuple[bytes, bytes | None]], codec: int) -> None:
        records = [
            Record(self.next_offset + at, self.now + at, key, value, (("h", key),))
            for at, (key, value) in enumerate(pairs)
        ]
        if len(build_batch(records)) > self.config.segment_bytes:
            records = records[:1]
        append(self.log, *records, codec=codec)
        self.written.update((record.offset, record) for record in records)
        self.next_offset = self.log.log_end_offset

    def gap(self, size: int) -> None:
        self.next_offset += size

    def roll(self) -> None:
        self.log.roll()

    def clean(self, hours: int) -> None:
        self.now += hours * HOUR
        while run(self.cleaner.run([self.log], self.now)):
            continue
        assert not self.cleaner.uncleanable

    def restart(self) -> None:
        self.log.close()
        self.log = load_log(PARTITION, self.log.directory, self.config, clean=False)
        self.log.advance_high_watermark(self.log.log_end_offset)

    def check(self) -> None:
        found = records_in(self.log)
        assert all(self.written[record.offset] == record for record in found)
        offsets = [record.offset for record in found]
        assert offsets == sorted(set(offsets))
        assert state_of(found) == state_of(list(self.written.values()))
        self.check_that_offsets_are_found(offsets)

    def check_that_offsets_are_found(self, offsets: list[int]) -> None:
        log = self.log
        for offset in offsets:
            part = log.read(offset, 1, log.log_end_offset).read()
            assert part, f"nothing is found at {offset}"


def state_of(records: list[Record]) -> dict[bytes | None, bytes]:
    state: dict[bytes | None, bytes] = {}
    for record in records:
        if record.value is None:
            state.pop(record.key, None)
        else:
            state[record.key] = record.value
    return state
