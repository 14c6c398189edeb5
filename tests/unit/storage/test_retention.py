"""Which segments go: by time, by size, by the start of the log."""

from pathlib import Path

import msgspec

from headrace.storage.config import LogConfig
from headrace.storage.log import Log
from headrace.storage.retention import delete_expired
from tests.builders.compacted_logs import NOW, base_offsets, new_log, write

HOUR = 3_600_000
FOREVER = LogConfig(retention_ms=-1)


def log_of_hours(directory: Path, *ages: int, config: LogConfig) -> Log:
    """A log with one closed segment of one record per age in hours, and an empty active one."""
    log = new_log(directory, config)
    for age in ages:
        write(log, [("k", "v" * 100)], NOW - age * HOUR)
        log.roll()
    return log


def test_the_defaults_are_a_week_and_no_limit_of_size() -> None:
    """RET-1."""
    assert (LogConfig().retention_ms, LogConfig().retention_bytes) == (168 * HOUR, -1)
    assert LogConfig().cleanup_policy == {"delete"}


def test_segments_go_when_their_youngest_record_is_too_old(tmp_path: Path) -> None:
    """RET-1: by time."""
    log = log_of_hours(tmp_path, 170, 168, 100, config=LogConfig())
    assert delete_expired(log, NOW) == 1
    assert (base_offsets(log), log.log_start_offset) == ([1, 2, 3], 1)
    assert delete_expired(log, NOW + 1) == 1


def test_an_old_segment_behind_a_young_one_has_to_wait(tmp_path: Path) -> None:
    log = log_of_hours(tmp_path, 10, 500, config=LogConfig())
    assert delete_expired(log, NOW) == 0


def test_the_active_segment_goes_too_when_it_is_too_old(tmp_path: Path) -> None:
    log = new_log(tmp_path, LogConfig())
    write(log, [("k", "v")], NOW - 200 * HOUR)
    assert delete_expired(log, NOW) == 1
    assert (base_offsets(log), log.log_start_offset, log.log_end_offset) == ([1], 1, 1)
    assert delete_expired(log, NOW) == 0


def test_segments_go_while_the_rest_is_as_large_as_the_limit(tmp_path: Path) -> None:
    """RET-1: by size; what is left is never less than the limit."""
    log = log_of_hours(tmp_path, 4, 3, 2, 1, config=FOREVER)
    size = log.segments[0].size
    log.reconfigure(msgspec.structs.replace(FOREVER, retention_bytes=2 * size))
    assert delete_expired(log, NOW) == 2
    log.reconfigure(msgspec.structs.replace(FOREVER, retention_bytes=2 * size - 1))
    assert delete_expired(log, NOW) == 0


def test_a_topic_that_is_only_compacted_keeps_its_old_records(tmp_path: Path) -> None:
    """RET-2."""
    config = LogConfig(cleanup_policy=frozenset(("compact",)), retention_bytes=0)
    log = log_of_hours(tmp_path, 500, 400, config=config)
    assert delete_expired(log, NOW) == 0
    both = frozenset(("compact", "delete"))
    log.reconfigure(msgspec.structs.replace(log.config, cleanup_policy=both))
    assert delete_expired(log, NOW) == 2


def test_segments_before_the_log_start_are_deleted_under_any_policy(tmp_path: Path) -> None:
    config = LogConfig(cleanup_policy=frozenset(("compact",)))
    log = log_of_hours(tmp_path, 3, 2, 1, config=config)
    log.log_start_offset = 2
    assert delete_expired(log, NOW) == 2
    assert base_offsets(log) == [2, 3]


def test_uncommitted_segments_are_kept(tmp_path: Path) -> None:
    log = log_of_hours(tmp_path, 500, 400, config=LogConfig())
    log.high_watermark = 1
    assert delete_expired(log, NOW) == 1


def test_without_limits_no_segment_is_deleted(tmp_path: Path) -> None:
    log = log_of_hours(tmp_path, 500_000, config=FOREVER)
    assert delete_expired(log, NOW) == 0
