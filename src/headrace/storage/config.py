"""The topic configs that a log uses, under Kafka's names and defaults."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

_WEEK_MS = 7 * 24 * 60 * 60 * 1000
_FOREVER = (1 << 63) - 1


class RecordRule(Protocol):
    """The topic's validation rule for keys or values."""

    @property
    def part(self) -> str:
        """`key` or `value`."""
        ...

    def complaint(
        self, payload: bytes | None, headers: Sequence[tuple[str, bytes | None]]
    ) -> str | None:
        """Return the reason to reject a record with this key or value, or None."""
        ...


class LogConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One object serves all logs with the same settings; a change puts a new one in its place."""

    segment_bytes: int = 1 << 30
    segment_ms: int = _WEEK_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    file_delete_delay_ms: int = 60_000
    preallocate: bool = False

    max_message_bytes: int = 1_048_588
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = _FOREVER
    message_timestamp_after_max_ms: int = 3_600_000
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3

    flush_messages: int = _FOREVER
    flush_ms: int = _FOREVER

    cleanup_policy: frozenset[str] = frozenset(("delete",))
    retention_ms: int = _WEEK_MS
    retention_bytes: int = -1
    delete_retention_ms: int = 24 * 60 * 60 * 1000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = _FOREVER
    min_cleanable_dirty_ratio: float = 0.5

    producer_id_expiration_ms: int = 24 * 60 * 60 * 1000
    min_insync_replicas: int = 1

    record_rules: tuple[RecordRule, ...] = ()

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def roll_ms(self) -> int:
        """The age at which a segment is rolled; earlier if compaction is due earlier."""
        if self.is_compacted and self.max_compaction_lag_ms > 0:
            return min(self.segment_ms, self.max_compaction_lag_ms)
        return self.segment_ms
