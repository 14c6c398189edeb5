"""How a pipeline stands, as plain values: for the status file, the screen and other programs."""

import datetime as dt
from typing import TYPE_CHECKING, Any

from headrace.pipelines.running.reports import Report

if TYPE_CHECKING:
    from headrace.pipelines.running.runner import PipelineRunner, RunningView
    from headrace.pipelines.running.running_flow import RunningFlow


def status_of(runner: "PipelineRunner", state: str) -> dict[str, Any]:
    """All that can be told of a pipeline at this moment."""
    run = runner.run
    return {
        "pipeline": run.name,
        "version": run.pipeline.settings.version,
        "architecture": run.pipeline.settings.architecture.value,
        "state": state,
        "mode": runner.mode,
        "started_at": runner.started_at.isoformat(timespec="seconds"),
        "updated_at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "flows": [_flow(running) for running in runner.flows],
        "views": [_view(running) for running in runner.views],
    }


def _flow(running: "RunningFlow") -> dict[str, Any]:
    report = running.report()
    state = "running" if running.is_active else "ended"
    if running.failure is not None and not running.is_active:
        state = "failed" if running.is_over else "retrying"
    return {
        "flow": running.flow.name,
        "target": running.flow.target,
        "zone": running.flow.target.partition(".")[0],
        "state": state,
        "rows_in": report.rows_in,
        "rows_out": report.rows_out,
        "quarantined": report.quarantined,
        "dropped": report.dropped,
        "broken": report.broken,
        "lag": running.lag(),
        "batch": report.batch,
        "last_rows": report.last_rows,
        "last_duration_ms": report.last_duration_ms,
        "last_at": _moment(report.last_at_ms),
        "error": running.failure.text if running.failure is not None else None,
    }


def _view(running: "RunningView") -> dict[str, Any]:
    report = Report.read(running.view.state.report)
    return {
        "view": running.view.name,
        "zone": running.view.name.partition(".")[0],
        "rows": report.rows_out,
        "last_at": _moment(report.last_at_ms),
        "last_duration_ms": report.last_duration_ms,
        "next_at": running.next_at.isoformat(timespec="seconds") if running.next_at else None,
        "error": running.failure,
    }


def _moment(at_ms: int) -> str | None:
    if not at_ms:
        return None
    return dt.datetime.fromtimestamp(at_ms / 1000, dt.UTC).isoformat(timespec="seconds")
