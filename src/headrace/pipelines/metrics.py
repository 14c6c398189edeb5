"""Prometheus metrics of running pipelines, from their status.

Names begin with `headrace_pipelines`. Flows have the labels `pipeline`, `flow` and `target`, views
have `pipeline` and `view`. Totals continue over restarts, as those of the status do.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from headrace.pipelines.status import FlowStatus, PipelineStatus, ViewStatus
from headrace.runtime.exposition import Family, Sample, labels
from headrace.runtime.observability import Health

_PREFIX = "headrace_pipelines"

FlowFigure = Callable[[FlowStatus], float | None]
ViewFigure = Callable[[ViewStatus], float | None]


def families(statuses: Sequence[PipelineStatus]) -> Iterator[Family]:
    """Return all metrics of some pipelines; a value that does not exist yet has no sample."""
    flows = [(one.pipeline, flow) for one in statuses for flow in one.flows]
    views = [(one.pipeline, view) for one in statuses for view in one.views]
    for name, kind, help_text, flow_figure in _OF_FLOWS:
        samples = _samples((_flow_labels(*one), flow_figure(one[1])) for one in flows)
        yield Family(f"{_PREFIX}_{name}", kind, help_text, samples)
    yield _broken(flows)
    yield _lags(flows)
    yield _durations(flows)
    for name, kind, help_text, view_figure in _OF_VIEWS:
        samples = _samples(
            ({"pipeline": pipeline, "view": view.view}, view_figure(view))
            for pipeline, view in views
        )
        yield Family(f"{_PREFIX}_view_{name}", kind, help_text, samples)


def health(statuses: Sequence[PipelineStatus]) -> Health:
    """Report a healthy run, even with failed flows: a restart would not repair them."""
    return Health(True, {one.pipeline: one.state for one in statuses})


def readiness(statuses: Sequence[PipelineStatus]) -> Health:
    """Report readiness; the checks name everything that fails or is stale."""
    troubles = {
        f"{one.pipeline}.{part.name}": part.error or "stale"
        for one in statuses
        for part in one.parts
        if part.error or part.stale
    }
    starting = {one.pipeline: one.state for one in statuses if one.state != "running"}
    checks = starting | troubles
    return Health(bool(statuses) and not checks, checks)


def _flow_labels(pipeline: str, flow: FlowStatus) -> dict[str, str]:
    return {"pipeline": pipeline, "flow": flow.flow, "target": flow.target}


def _samples(series: Iterable[tuple[Mapping[str, str], float | None]]) -> list[Sample]:
    return [Sample(value, labels(**pairs)) for pairs, value in series if value is not None]


def _broken(flows: Sequence[tuple[str, FlowStatus]]) -> Family:
    return Family(
        f"{_PREFIX}_expectation_broken_rows_total",
        "counter",
        "Rows that broke an expectation, with any consequence.",
        [
            Sample(rows, labels(**_flow_labels(pipeline, flow), expectation=name))
            for pipeline, flow in flows
            for name, rows in sorted(flow.broken.items())
        ],
    )


def _lags(flows: Sequence[tuple[str, FlowStatus]]) -> Family:
    return Family(
        f"{_PREFIX}_lag_records",
        "gauge",
        "Records of a partition that the flow has not read yet.",
        [
            Sample(records, labels(**_flow_labels(one, flow), topic=topic, partition=partition))
            for one, flow in flows
            for topic, partitions in sorted(flow.lags.items())
            for partition, records in sorted(partitions.items(), key=lambda item: int(item[0]))
        ],
    )


def _durations(flows: Sequence[tuple[str, FlowStatus]]) -> Family:
    samples = []
    for pipeline, flow in flows:
        pairs = labels(**_flow_labels(pipeline, flow))
        samples.append(Sample(flow.duration_ms, pairs, "_sum"))
        samples.append(Sample(flow.batches, pairs, "_count"))
    return Family(
        f"{_PREFIX}_batch_duration_milliseconds", "summary", "The duration of batches.", samples
    )


def _seconds(moment: str | None) -> float | None:
    return None if moment is None else dt.datetime.fromisoformat(moment).timestamp()


_OF_FLOWS: tuple[tuple[str, str, str, FlowFigure], ...] = (
    ("rows_in_total", "counter", "Rows read by the flow.", lambda one: one.rows_in),
    ("rows_out_total", "counter", "Rows written to the target.", lambda one: one.rows_out),
    (
        "rows_quarantined_total",
        "counter",
        "Rows put into quarantine.",
        lambda one: one.quarantined,
    ),
    ("rows_dropped_total", "counter", "Rows dropped.", lambda one: one.dropped),
    (
        "last_batch_duration_milliseconds",
        "gauge",
        "The duration of the last batch.",
        lambda one: one.last_duration_ms if one.last_at else None,
    ),
    (
        "last_success_timestamp_seconds",
        "gauge",
        "The time of the last written batch, in seconds since 1970.",
        lambda one: _seconds(one.last_at),
    ),
    (
        "restarts_total",
        "counter",
        "Restarts of the flow after a failure, in this run.",
        lambda one: one.restarts,
    ),
    ("failed", "gauge", "1 if the flow has failed for good.", lambda one: one.state == "failed"),
    (
        "running",
        "gauge",
        "1 while the flow runs, 0 between a failure and the restart and after its end.",
        lambda one: one.state == "running",
    ),
    (
        "stale",
        "gauge",
        "1 if the target is not as fresh as expected.",
        lambda one: one.stale is not None,
    ),
)
_OF_VIEWS: tuple[tuple[str, str, str, ViewFigure], ...] = (
    ("rows", "gauge", "Rows of the view.", lambda one: one.rows),
    (
        "last_duration_milliseconds",
        "gauge",
        "The duration of the last refresh.",
        lambda one: one.last_duration_ms if one.last_at else None,
    ),
    (
        "last_success_timestamp_seconds",
        "gauge",
        "The time of the last refresh, in seconds since 1970.",
        lambda one: _seconds(one.last_at),
    ),
    (
        "failed",
        "gauge",
        "1 if the last refresh failed.",
        lambda one: one.error is not None,
    ),
    (
        "stale",
        "gauge",
        "1 if the view is not as fresh as expected.",
        lambda one: one.stale is not None,
    ),
)
