"""How a running pipeline stands, gathered from its flows and views."""

import datetime as dt
import time
from typing import TYPE_CHECKING

from headrace.pipelines.names import zone_of
from headrace.pipelines.running.pipeline_run import now
from headrace.pipelines.running.reports import Report
from headrace.pipelines.status import FlowStatus, PipelineStatus, ViewStatus

if TYPE_CHECKING:
    from headrace.pipelines.running.runner import PipelineRunner
    from headrace.pipelines.running.running_flow import RunningFlow
    from headrace.pipelines.running.running_view import RunningView


_OVER = ("stopped", "done", "failed")
"""The states of a pipeline that does not run any more."""


def status_of(runner: "PipelineRunner", state: str) -> PipelineStatus:
    """All that can be told of a pipeline at this moment."""
    settings, stale = runner.run.pipeline.settings, runner.freshness.stale
    has_run_ended = state in _OVER
    moment = now()
    is_by_the_clock = runner.mode == "continuous" and not has_run_ended
    return PipelineStatus(
        pipeline=settings.name,
        state=state,
        lake=settings.lake,
        version=settings.version,
        fingerprint=runner.run.pipeline.fingerprint,
        architecture=settings.architecture.value,
        mode=runner.mode,
        started_at=_text(runner.started_at),
        updated_at=_text(moment),
        flows=tuple(
            _flow(
                one,
                _flow_state(runner, one, has_run_ended=has_run_ended),
                one.next_at(moment, time.monotonic()) if is_by_the_clock else None,
                stale.get(one.flow.target),
            )
            for one in runner.flows
        ),
        views=tuple(
            _view(one, stale.get(one.view.name), has_run_ended=has_run_ended)
            for one in runner.views
        ),
        moving=tuple(sorted(runner.moving.views)),
    )


def _flow_state(runner: "PipelineRunner", running: "RunningFlow", *, has_run_ended: bool) -> str:
    """What a flow does; when the run has ended nothing is tried again or waited for."""
    if running.is_active:
        return "running"
    if running.has_failed:
        return "failed"
    if has_run_ended:
        return "ended"
    if running.failure is not None:
        return "retrying"
    return "waiting" if runner.waits(running.flow.target) else "ended"


def _flow(
    running: "RunningFlow", state: str, next_at: dt.datetime | None, stale: str | None
) -> FlowStatus:
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
        next_at=_text(next_at) if next_at else None,
        error=running.failure.text if running.failure is not None else None,
        stale=stale,
    )


def _view(running: "RunningView", stale: str | None, *, has_run_ended: bool) -> ViewStatus:
    report = Report.read(running.view.state.report)
    return ViewStatus(
        view=running.view.name,
        zone=zone_of(running.view.name),
        rows=report.rows_out,
        last_at=_moment(report.last_at_ms),
        last_duration_ms=report.last_duration_ms,
        next_at=_text(running.next_at) if running.next_at and not has_run_ended else None,
        error=running.failure,
        stale=stale,
    )


def _moment(at_ms: int) -> str | None:
    return _text(dt.datetime.fromtimestamp(at_ms / 1000, dt.UTC)) if at_ms else None


def _text(moment: dt.datetime) -> str:
    return moment.isoformat(timespec="seconds")
