"""How a running pipeline stands, gathered from its flows and views."""

import datetime as dt
from typing import TYPE_CHECKING

from headrace.pipelines.names import zone_of
from headrace.pipelines.running.reports import Report
from headrace.pipelines.status import FlowStatus, PipelineStatus, ViewStatus

if TYPE_CHECKING:
    from headrace.pipelines.running.runner import PipelineRunner, RunningView
    from headrace.pipelines.running.running_flow import RunningFlow


_OVER = ("stopped", "done", "failed")
"""The states of a pipeline that does not run any more."""


def status_of(runner: "PipelineRunner", state: str) -> PipelineStatus:
    """All that can be told of a pipeline at this moment."""
    settings, stale = runner.run.pipeline.settings, runner.freshness.stale
    is_over = state in _OVER
    return PipelineStatus(
        pipeline=settings.name,
        state=state,
        lake=settings.lake,
        version=settings.version,
        fingerprint=runner.run.pipeline.fingerprint,
        architecture=settings.architecture.value,
        mode=runner.mode,
        started_at=_text(runner.started_at),
        updated_at=_text(dt.datetime.now(dt.UTC)),
        flows=tuple(
            _flow(one, _flow_state(runner, one, is_over=is_over), stale.get(one.flow.target))
            for one in runner.flows
        ),
        views=tuple(_view(one, stale.get(one.view.name), is_over=is_over) for one in runner.views),
        moving=tuple(sorted(runner.moving.views)),
    )


def _flow_state(runner: "PipelineRunner", running: "RunningFlow", *, is_over: bool) -> str:
    """What a flow does; of a run that is over nothing is tried again or waited for."""
    if running.is_active:
        return "running"
    if running.failure is not None:
        return "failed" if running.is_over else "ended" if is_over else "retrying"
    return "waiting" if runner.waits(running.flow.target) and not is_over else "ended"


def _flow(running: "RunningFlow", state: str, stale: str | None) -> FlowStatus:
    report, lags = running.report(), running.lags()
    return FlowStatus(
        flow=running.flow.name,
        target=running.flow.target,
        zone=zone_of(running.flow.target),
        state=state,
        rows_in=report.rows_in,
        rows_out=report.rows_out,
        quarantined=report.quarantined,
        dropped=report.dropped,
        broken=report.broken,
        lag=sum(sum(partitions.values()) for partitions in lags.values()) if lags else None,
        lags=lags,
        restarts=running.restarted,
        batch=report.batch,
        batches=report.batches,
        duration_ms=report.duration_ms,
        last_rows=report.last_rows,
        last_duration_ms=report.last_duration_ms,
        last_at=_moment(report.last_at_ms),
        error=running.failure.text if running.failure is not None else None,
        stale=stale,
    )


def _view(running: "RunningView", stale: str | None, *, is_over: bool) -> ViewStatus:
    report = Report.read(running.view.state.report)
    return ViewStatus(
        view=running.view.name,
        zone=zone_of(running.view.name),
        rows=report.rows_out,
        last_at=_moment(report.last_at_ms),
        last_duration_ms=report.last_duration_ms,
        next_at=_text(running.next_at) if running.next_at and not is_over else None,
        error=running.failure,
        stale=stale,
    )


def _moment(at_ms: int) -> str | None:
    return _text(dt.datetime.fromtimestamp(at_ms / 1000, dt.UTC)) if at_ms else None


def _text(moment: dt.datetime) -> str:
    return moment.isoformat(timespec="seconds")
