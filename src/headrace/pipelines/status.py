"""How a pipeline stands: the words of the status file, the screen and other programs."""

from collections.abc import Sequence

import msgspec


class FlowStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A flow: what it has moved since it began, and what its last batch was."""

    flow: str
    target: str = ""
    zone: str = ""
    state: str = ""
    """running, retrying, waiting (for what it reads to change its architecture), ended, failed, or
    died with its driver."""
    rows_in: int = 0
    rows_out: int = 0
    quarantined: int = 0
    """All that it has put there, also what a redrive has taken out since."""
    dropped: int = 0
    broken: dict[str, int] = {}
    lag: int | None = None
    """The records that are yet to be read; None where that is not known, as of tables."""
    lags: dict[str, dict[str, int]] = {}
    """The same by topic and partition."""
    restarts: int = 0
    """How often it was started again after a failure, in this run."""
    batch: int = -1
    batches: int = 0
    duration_ms: int = 0
    last_rows: int = 0
    last_duration_ms: int = 0
    last_at: str | None = None
    next_at: str | None = None
    """When it looks for rows again, or is started again; None where that is not by the clock."""
    error: str | None = None
    stale: str | None = None
    """Why its table is not as fresh as is expected of it."""

    @property
    def name(self) -> str:
        return self.flow


class ViewStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A view that is computed whole: when that was, and when it will be."""

    view: str
    zone: str = ""
    rows: int = 0
    last_at: str | None = None
    last_duration_ms: int = 0
    next_at: str | None = None
    error: str | None = None
    stale: str | None = None
    """Why it is not as fresh as is expected of it."""

    @property
    def name(self) -> str:
        return self.view


class PipelineStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A pipeline at some moment."""

    pipeline: str
    state: str
    """starting, running, stopped, done, failed, died or never run."""
    lake: str = ""
    version: str = ""
    fingerprint: str = ""
    """By which state of its files it runs or ran."""
    folder_fingerprint: str = ""
    """That of the files in its folder, when someone asks; they count from the next start."""
    architecture: str = ""
    mode: str = ""
    """once or continuous."""
    started_at: str | None = None
    updated_at: str | None = None
    flows: tuple[FlowStatus, ...] = ()
    views: tuple[ViewStatus, ...] = ()
    moving: tuple[str, ...] = ()
    """Merged views that are built for another architecture; readers see the old tables so far."""

    @property
    def parts(self) -> Sequence[FlowStatus | ViewStatus]:
        return (*self.flows, *self.views)

    @property
    def stale(self) -> Sequence[str]:
        """What is to be told of tables that are not fresh; several flows may feed one."""
        return tuple(dict.fromkeys(one.stale for one in self.parts if one.stale))

    @property
    def rows_in(self) -> int:
        """The rows that all flows have taken in."""
        return sum(flow.rows_in for flow in self.flows)

    @property
    def lag(self) -> int | None:
        """The records that are yet to be read, as far as flows know."""
        known = [flow.lag for flow in self.flows if flow.lag is not None]
        return sum(known) if known else None
