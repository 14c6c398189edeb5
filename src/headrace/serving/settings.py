"""The settings of a server of tables: limits of rows, time, memory and concurrency."""

import os
from pathlib import Path

import msgspec

MEBIBYTE = 1 << 20


class ServingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Built once from the command line and handed down."""

    lake: Path
    zones: tuple[str, ...] = ("refined",)
    """The served zones; tables of the first one are also found by their bare name."""
    memory_bytes: int = 2048 * MEBIBYTE
    """DuckDB's memory limit: half for loaded tables, the rest for queries."""
    rows_default: int = 10_000
    rows_max: int = 1_000_000
    answer_bytes_max: int = 64 * MEBIBYTE
    request_bytes_max: int = MEBIBYTE
    query_seconds_max: float = 30.0
    queries_at_once_max: int = 4
    lookups_at_once_max: int = 4
    waiting_max: int = 64
    refresh_seconds: float = 1.0
    threads: int = os.cpu_count() or 1

    @property
    def tables_bytes_max(self) -> int:
        return self.memory_bytes // 2
