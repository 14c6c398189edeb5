"""The metrics of running pipelines."""

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from headrace.pipelines.metrics import families, health, readiness
from headrace.pipelines.status import FlowStatus, PipelineStatus, ViewStatus
from headrace.runtime.exposition import render

FLOW = FlowStatus(
    flow="staging.orders",
    target="staging.orders",
    state="running",
    rows_in=12,
    rows_out=9,
    quarantined=2,
    dropped=1,
    broken={"positive": 3},
    lag=7,
    lags={"orders": {"10": 2, "9": 5}},
    restarts=1,
    batches=4,
    duration_ms=900,
    last_duration_ms=150,
    last_at="2026-03-01T12:00:00+00:00",
)
RUNNING = PipelineStatus(
    pipeline="shop",
    state="running",
    flows=(FLOW, FlowStatus(flow="late", target="raw.late", state="retrying", error="no broker")),
    views=(ViewStatus(view="refined.days", rows=3, last_at="2026-03-01T12:00:01+00:00"),),
)


def page(*statuses: PipelineStatus) -> dict[tuple[str, ...], float]:
    """The samples by name and labels, as Prometheus' own parser reads them."""
    text = "".join(render(families(statuses)))
    found = [sample for one in text_string_to_metric_families(text) for sample in one.samples]
    return {(one.name, *one.labels.values()): one.value for one in found}


def test_metrics_of_a_flow_show_rows_durations_and_lag() -> None:
    shown = page(RUNNING)
    flow = ("shop", "staging.orders", "staging.orders")
    prefix = "headrace_pipelines"
    assert {
        name.removeprefix(f"{prefix}_"): value
        for (name, *pairs), value in shown.items()
        if tuple(pairs) == flow
    } == {
        "rows_in_total": 12,
        "rows_out_total": 9,
        "rows_quarantined_total": 2,
        "rows_dropped_total": 1,
        "batch_duration_milliseconds_sum": 900,
        "batch_duration_milliseconds_count": 4,
        "last_batch_duration_milliseconds": 150,
        "last_success_timestamp_seconds": 1772366400,
        "restarts_total": 1,
        "failed": 0,
        "running": 1,
        "stale": 0,
    }
    assert shown[f"{prefix}_expectation_broken_rows_total", *flow, "positive"] == 3
    assert shown[f"{prefix}_lag_records", *flow, "orders", "9"] == 5
    assert shown[f"{prefix}_lag_records", *flow, "orders", "10"] == 2


def test_events_that_never_happened_have_no_timestamp() -> None:
    names = {name for name, *pairs in page(RUNNING) if pairs[1] == "late"}
    assert "headrace_pipelines_rows_in_total" in names
    assert "headrace_pipelines_last_success_timestamp_seconds" not in names


def test_metrics_of_a_view_show_when_it_was_computed() -> None:
    shown = page(RUNNING)
    assert shown["headrace_pipelines_view_rows", "shop", "refined.days"] == 3
    at = "headrace_pipelines_view_last_success_timestamp_seconds"
    assert shown[at, "shop", "refined.days"] == 1772366401


def test_a_run_is_ready_when_everything_runs_as_it_should() -> None:
    fine = PipelineStatus(pipeline="shop", state="running", flows=(FLOW,))
    assert readiness([fine]).is_ok
    assert readiness([RUNNING]).checks == {"shop.late": "no broker"}
    assert not readiness([RUNNING]).is_ok
    assert not readiness([PipelineStatus(pipeline="shop", state="starting")]).is_ok
    assert not readiness([]).is_ok, "Spark is still being started"


def test_a_failed_flow_does_not_make_the_run_unhealthy() -> None:
    assert health([RUNNING]).is_ok
    assert health([RUNNING]).checks == {"shop": "running"}


def test_the_page_on_metrics_names_exactly_the_metrics() -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "reference" / "metrics.md"
    named = set(re.findall(r"`(headrace_pipelines_\w+)`", page.read_text()))
    assert named == {family.name for family in families([])}
