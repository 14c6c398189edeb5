"""How much a flow has moved: counted batch by batch, kept in a small file beside its checkpoint.

The batch's own function writes it, wherever it runs, so that whoever runs the pipeline and whoever
only looks at it read the same numbers. A crash between a commit and its report loses the report of
one batch, never rows.
"""

import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from headrace.pipelines.running.batches import add_counts
from headrace.pipelines.running.state import read_json, write_file


@dataclass(slots=True)
class Outcome:
    """What became of the rows of one batch."""

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
    """The batch had been written before a crash; this time nothing was done."""
    is_idle: bool = False
    """There was nothing to read."""


@dataclass(slots=True)
class Report:
    """Totals of a flow since it began, and its last batch."""

    batch: int = -1
    rows_in: int = 0
    rows_out: int = 0
    quarantined: int = 0
    dropped: int = 0
    broken: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    newest_ms: dict[str, int] = field(default_factory=dict)
    """For each expectation of freshness the newest time that the flow has brought."""
    batches: int = 0
    duration_ms: int = 0
    """How many batches there were, and how long all of them took."""
    last_rows: int = 0
    last_duration_ms: int = 0
    last_at_ms: int = 0
    ends: dict[str, dict[str, int]] = field(default_factory=dict)
    """Where the flow stands in its topics."""
    query: str = ""
    """What a view was computed by, as `fingerprints` tells it."""
    looked_at_ms: int = 0
    """When a view was last computed, or found to be as its inputs are."""

    def add(self, batch: int, outcome: Outcome, duration_ms: int) -> None:
        self.batch = batch
        self.batches += 1
        self.duration_ms += duration_ms
        self.last_duration_ms = duration_ms
        self.last_at_ms = time.time_ns() // 1_000_000
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
