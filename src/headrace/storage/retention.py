"""Retention of a log: by time, by size, by the start of the log.

Whole segments are deleted from the oldest on, never beyond the high watermark. A compacted topic
keeps old records unless its policy includes `delete`; records before the start of the log are
always deleted.
"""

from collections.abc import Callable

from headrace.storage.config import LogConfig
from headrace.storage.log import Log
from headrace.storage.segment import Segment

UNLIMITED = -1

TooOld = Callable[[Segment, int], bool]
"""A rule on a segment and the offset where the next one begins."""


def delete_expired(log: Log, now_ms: int) -> int:
    """Delete segments beyond the topic's retention; return their number.

    Usually only the oldest segment is checked. Its time index may have to be read, so callers with
    thousands of logs spread their calls.
    """
    try:
        expired = expired_segments(log, log.config, now_ms)
    except OSError as error:
        raise log.storage_error(error) from error
    log.delete_segments(expired)
    return len(expired)


def expired_segments(log: Log, config: LogConfig, now_ms: int) -> list[Segment]:
    """The longest run of oldest segments that a rule expires."""
    rules = [_before_start(log)]
    if "delete" in config.cleanup_policy:
        if config.retention_bytes > UNLIMITED:
            rules.append(_beyond_size(log, config.retention_bytes))
        if config.retention_ms > UNLIMITED:
            rules.append(_older_than(now_ms - config.retention_ms))
    count = 0
    for rule in rules:
        count = _extend(log, count, rule)
    return log.segments[:count]


def _extend(log: Log, count: int, gives_up: TooOld) -> int:
    """The number of expired segments if this rule continues after the others."""
    segments = log.segments
    while count < len(segments):
        segment = segments[count]
        is_last = count + 1 == len(segments)
        end_offset = log.log_end_offset if is_last else segments[count + 1].base_offset
        if (is_last and segment.size == 0) or log.high_watermark < end_offset:
            break
        if not gives_up(segment, end_offset):
            break
        count += 1
    return count


def _before_start(log: Log) -> TooOld:
    """The active segment is needed even if the log starts at its end."""
    return lambda segment, end_offset: (
        segment is not log.segments[-1] and end_offset <= log.log_start_offset
    )


def _beyond_size(log: Log, retention_bytes: int) -> TooOld:
    """Expire a segment if the remaining size still reaches the limit."""
    younger = {}
    size = 0
    for segment in reversed(log.segments):
        younger[segment.base_offset] = size
        size += segment.size
    return lambda segment, _: younger[segment.base_offset] >= retention_bytes


def _older_than(oldest_ms: int) -> TooOld:
    return lambda segment, _: segment.largest_timestamp() < oldest_ms
