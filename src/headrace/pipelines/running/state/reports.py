"""The report of a flow: totals by batch, in a small file next to its checkpoint.

The batch function writes it, in any process, so that the runner and other programs read the same
numbers. A crash between a commit and its report loses the report of one batch, never rows.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from headrace.pipelines.running.flows.batch_files import add_counts
from headrace.pipelines.running.state.folders import read_json, write_file


@dataclass(slots=True)
class Outcome:
    """The outcome of one batch's rows."""

    rows_in: int = 0
    rows_out: int = 0
    quarantined: int = 0
    dropped: int = 0
    broken: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    newest_ms: dict[str, int] = field(default_factory=dict)
    """For each expectation of freshness the newest time among the rows."""
    version: int | None = None
    is_repeated: bool = False
    """True if the batch was written before a crash and is skipped now."""
    is_idle: bool = False
    """True if there were no records to read."""


@dataclass(slots=True)
class Report:
    """Totals of a flow since its first batch, and its last batch."""

    batch: int = -1
    rows_in: int = 0
    rows_out: int = 0
    quarantined: int = 0
    dropped: int = 0
    broken: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    newest_ms: dict[str, int] = field(default_factory=dict)
    """For each expectation of freshness the newest time of the flow's rows."""
    batches: int = 0
    duration_ms: int = 0
    """The total duration of all batches."""
    last_rows: int = 0
    last_duration_ms: int = 0
    last_at_ms: int = 0
    ends: dict[str, dict[str, int]] = field(default_factory=dict)
    """The offsets that the flow has reached in its topics."""
    query: str = ""
    """The fingerprint of a view's definition at its last computation."""
    looked_at_ms: int = 0
    """The time at which a view was last computed, or found up to date."""

    def add(self, batch: int, outcome: Outcome, duration_ms: int, now_ms: int) -> None:
        self.batch = batch
        self.batches += 1
        self.duration_ms += duration_ms
        self.last_duration_ms = duration_ms
        self.last_at_ms = now_ms
        self.last_rows = outcome.rows_in
        self.warnings = outcome.warnings
        if outcome.is_repeated:
            return
        self.rows_in += outcome.rows_in
        self.rows_out += outcome.rows_out
        self.quarantined += outcome.quarantined
        self.dropped += outcome.dropped
        add_counts(self.broken, outcome.broken)
        for name, at_ms in outcome.newest_ms.items():
            self.newest_ms[name] = max(at_ms, self.newest_ms.get(name, at_ms))

    def write(self, path: Path) -> None:
        write_file(path, json.dumps(asdict(self)).encode(), sync=False)

    @classmethod
    def read(cls, path: Path) -> "Report":
        try:
            content: dict[str, Any] = read_json(path)
        except ValueError:
            return cls()  # Not synced, so a crash of the machine may leave half of it.
        known = {name: content[name] for name in cls.__slots__ if name in content}
        return cls(**known)
