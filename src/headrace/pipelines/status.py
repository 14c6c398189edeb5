"""The status of a pipeline, as in the status file, on the screen and for other programs."""

from collections.abc import Sequence

import msgspec


class FlowStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A flow: its totals, and its last batch."""

    flow: str
    target: str = ""
    zone: str = ""
    state: str = ""
    """running, retrying, waiting (until a view that it reads has changed its architecture), ended,
    failed, or died with its driver."""
    rows_in: int = 0
    rows_out: int = 0
    quarantined: int = 0
    """All rows ever put into quarantine, including those that redrive has taken out."""
    dropped: int = 0
    broken: dict[str, int] = {}
    lag: int | None = None
    """The records and rows that are not read yet; None if unknown."""
    lags: dict[str, dict[str, int]] = {}
    """The records by topic and partition."""
    restarts: int = 0
    """Restarts after a failure, in this run."""
    batch: int = -1
    batches: int = 0
    duration_ms: int = 0
    last_rows: int = 0
    last_duration_ms: int = 0
    last_at: str | None = None
    next_at: str | None = None
    """The time of the next batch or restart; None without a schedule."""
    error: str | None = None
    stale: str | None = None
    """The reason why its table is not as fresh as expected."""

    @property
    def name(self) -> str:
        return self.flow


class ViewStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A view that is computed whole, with its last and next refresh."""

    view: str
    zone: str = ""
    rows: int = 0
    last_at: str | None = None
    last_duration_ms: int = 0
    next_at: str | None = None
    error: str | None = None
    stale: str | None = None
    """The reason why it is not as fresh as expected."""

    @property
    def name(self) -> str:
        return self.view


class PipelineStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A pipeline at one moment."""

    pipeline: str
    state: str
    """starting, running, stopped, done, failed, died or never run."""
    lake: str = ""
    version: str = ""
    fingerprint: str = ""
    """The state of its files in this run."""
    folder_fingerprint: str = ""
    """The current state of the files in its folder; they count from the next start."""
    architecture: str = ""
    mode: str = ""
    """once or continuous."""
    started_at: str | None = None
    updated_at: str | None = None
    flows: tuple[FlowStatus, ...] = ()
    views: tuple[ViewStatus, ...] = ()
    moving: tuple[str, ...] = ()
    """Merged views being built for another architecture; readers still see the old tables."""

    @property
    def parts(self) -> Sequence[FlowStatus | ViewStatus]:
        return (*self.flows, *self.views)

    @property
    def stale(self) -> Sequence[str]:
        """The reasons of all stale tables, each once: several flows may feed one table."""
        return tuple(dict.fromkeys(one.stale for one in self.parts if one.stale))

    @property
    def rows_in(self) -> int:
        """The rows that all flows have read."""
        return sum(flow.rows_in for flow in self.flows)

    @property
    def lag(self) -> int | None:
        """The records that are not read yet, as far as flows report it."""
        known = [flow.lag for flow in self.flows if flow.lag is not None]
        return sum(known) if known else None
