"""The status of a running pipeline's flows and views, from their reports and queries."""

import datetime as dt
from dataclasses import fields

from headrace.pipelines.declaring.names import zone_of
from headrace.pipelines.running.driving.running_flow import RunningFlow
from headrace.pipelines.running.driving.running_view import RunningView
from headrace.pipelines.running.state.reports import Report
from headrace.pipelines.status import FlowStatus, ViewStatus

_REPORTED = set(FlowStatus.__struct_fields__) & {one.name for one in fields(Report)}
"""The fields of a flow's status that its report has under the same name."""


def flow_status(
    running: RunningFlow, state: str, next_at: dt.datetime | None, stale: str | None
) -> FlowStatus:
    report = running.report()
    return FlowStatus(
        flow=running.flow.name,
        target=running.flow.target,
        zone=zone_of(running.flow.target),
        state=state,
        lag=running.lag(),
        lags=running.lags(),
        restarts=running.restarted,
        last_at=_reported(report.last_at_ms),
        next_at=moment_text(next_at) if next_at else None,
        error=running.failure.text if running.failure is not None else None,
        stale=stale,
        **{name: getattr(report, name) for name in _REPORTED},
    )


def view_status(running: RunningView, stale: str | None, *, has_run_ended: bool) -> ViewStatus:
    report = Report.read(running.view.state.report)
    return ViewStatus(
        view=running.view.name,
        zone=zone_of(running.view.name),
        rows=report.rows_out,
        last_at=_reported(report.last_at_ms),
        last_duration_ms=report.last_duration_ms,
        next_at=moment_text(running.next_at) if running.next_at and not has_run_ended else None,
        error=running.failure,
        stale=stale,
    )


def _reported(at_ms: int) -> str | None:
    return moment_text(dt.datetime.fromtimestamp(at_ms / 1000, dt.UTC)) if at_ms else None


def moment_text(moment: dt.datetime) -> str:
    return moment.isoformat(timespec="seconds")
