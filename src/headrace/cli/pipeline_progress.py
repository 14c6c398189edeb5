"""Progress of pipelines for people: a live line while they run, tables on request."""

import logging
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from headrace.cli.output import counted, print_line, print_rows, print_table, warn
from headrace.cli.progress import ProgressLine
from headrace.pipelines.analysing.spark_errors import is_from_spark, short_text
from headrace.pipelines.model import ZONES
from headrace.pipelines.status import PipelineStatus
from headrace.runtime.logging import event_text

if TYPE_CHECKING:
    from headrace.pipelines.running.driving.runner import PipelineRunner
    from headrace.pipelines.running.state.reports import Outcome

_PLAIN_EVERY_S = 10.0
"""Interval between lines if the output is not a terminal."""
_BETWEEN = "   "
_RATE_S = 10.0
"""The time over which rates are measured: batches of some seconds give a steady rate."""
_SPARK = ("py4j", "pyspark")


class Screen:
    """Shows running pipelines: a live line on a terminal, a line at times in a file.

    Log records get their own lines.
    """

    def __init__(self) -> None:
        self._line = ProgressLine()
        self._plain_at_s = time.monotonic() + _PLAIN_EVERY_S
        self._rates = Rates()
        self._shape = 0
        self._log = LogLines(self._line)

    def __enter__(self) -> Self:
        self._log.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """Clear the line for the next output."""
        self._log.__exit__()
        self._line.clear()

    def show(self, runners: "list[PipelineRunner]") -> None:
        """Update the display; called about once a second while pipelines run."""
        statuses = [runner.status for runner in runners]
        now_s = time.monotonic()
        rates = self._rates.update(statuses, now_s)
        if self._line.is_shown:
            # A line that once was too long keeps its shorter shape.
            text, self._shape = fitted_text(statuses, rates, self._line.width, self._shape)
            self._line.show(text)
        elif now_s >= self._plain_at_s:
            self._plain_at_s = now_s + _PLAIN_EVERY_S
            print_line(whole_text(statuses, rates))


class Rates:
    """Rows per second of pipelines over the last seconds of this run."""

    def __init__(self) -> None:
        self._counts: dict[str, deque[tuple[float, int]]] = {}

    def update(self, statuses: Sequence[PipelineStatus], now_s: float) -> list[float]:
        """Add the current totals, and return the rate of each pipeline."""
        return [self._updated(one.pipeline, one.rows_in, now_s) for one in statuses]

    def _updated(self, pipeline: str, rows: int, now_s: float) -> float:
        counts = self._counts.setdefault(pipeline, deque())
        counts.append((now_s, rows))
        while len(counts) > 2 and counts[1][0] <= now_s - _RATE_S:
            counts.popleft()
        since_s, before = counts[0]
        return max(0, rows - before) / max(now_s - since_s, 1e-9)


class LogLines(logging.Handler):
    """Prints each warning and error of the process on its own line above the live one.

    Tracebacks of Spark are left out: they are hundreds of lines about one lost connection, and
    Spark's own log has the cause.
    """

    def __init__(self, line: ProgressLine) -> None:
        super().__init__(logging.WARNING)
        self._line = line

    def __enter__(self) -> Self:
        logging.getLogger().addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        if is_of_spark(record):
            return  # The run ends with the error itself.
        self._line.clear()
        warn(event_text(record))
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and is_from_spark(error):
            warn(short_text(error))
        elif error is not None:
            warn("".join(traceback.format_exception(error)).rstrip())


def is_of_spark(record: logging.LogRecord) -> bool:
    """Return whether PySpark or py4j logged a record; py4j uses the root logger, too."""
    is_of_py4j = record.name == "root" and Path(record.pathname).parent.name == "py4j"
    return record.name.startswith(_SPARK) or is_of_py4j


def whole_text(statuses: Sequence[PipelineStatus], rates: Sequence[float]) -> str:
    """Format the progress in full."""
    return _BETWEEN.join(map(progress_text, statuses, rates))


def fitted_text(
    statuses: Sequence[PipelineStatus], rates: Sequence[float], width: int, shape: int = 0
) -> tuple[str, int]:
    """Format as much as fits, in shorter and shorter shapes; return the used shape too."""
    shapes: tuple[Callable[[PipelineStatus, float], str], ...] = (
        progress_text,
        rounded_text,
        chain_text,
        last_zone_text,
        rate_text,
    )
    for number, formatted in enumerate(shapes[shape:], start=shape):
        text = _BETWEEN.join(map(formatted, statuses, rates))
        if len(text) <= width:
            return text, number
    return f"{counted(len(statuses), 'pipeline')}  {rounded(sum(rates))} rows/s", len(shapes)


def progress_text(status: PipelineStatus, rate: float) -> str:
    """Format the rows so far, the lag and the rate."""
    lag = "" if status.lag is None else f"  lag {status.lag:,}"
    if status.flows and not any(flow.batches or flow.rows_in for flow in status.flows):
        return f"{status.pipeline}: waiting for its first batch{lag}{notes_text(status)}"
    return f"{outcome_text(status)}{lag}  {rate:,.0f} rows/s{notes_text(status)}"


def rounded_text(status: PipelineStatus, rate: float) -> str:
    """`shop: raw 1.2k  staging 1.2k/1.1k  quarantined 10  lag 5  300 rows/s`."""
    return _rounded_text(status, rate, zones_of(status))


def chain_text(status: PipelineStatus, rate: float) -> str:
    """Format as `shop: raw 1.2k>1.1k>refined 12  quarantined 10  lag 5  300 rows/s`, rows out."""
    zones = zones_of(status)
    ends = list(zones)[:1] + list(zones)[-1:]
    parts = [
        f"{zone} {rounded(given)}" if zone in ends else rounded(given)
        for zone, (_, given) in zones.items()
    ]
    return _line_text(status, rate, [">".join(parts)])


def last_zone_text(status: PipelineStatus, rate: float) -> str:
    """`shop: refined 1.1k  quarantined 10  lag 5  300 rows/s`."""
    zones = zones_of(status)
    last = list(zones)[-1:]
    return _rounded_text(status, rate, {zone: zones[zone] for zone in last})


def rate_text(status: PipelineStatus, rate: float) -> str:
    return f"{status.pipeline} {rounded(rate)} rows/s{notes_text(status)}"


def notes_text(status: PipelineStatus) -> str:
    """Format as `  1 flow failed, see status`: conditions to look up there.

    These are failed flows, stale tables, and views that move to another architecture.
    """
    failed = sum(flow.state == "failed" for flow in status.flows)
    notes = [f"{counted(failed, 'flow')} failed"] if failed else []
    if status.stale:
        notes.append(f"{counted(len(status.stale), 'table')} stale")
    if status.moving:
        notes.append(f"{counted(len(status.moving), 'view')} moving to {status.architecture}")
    return f"  {', '.join(notes)}, see status" if notes else ""


def _rounded_text(status: PipelineStatus, rate: float, zones: dict[str, tuple[int, int]]) -> str:
    parts = []
    for zone, (taken, given) in zones.items():
        both = f"{rounded(taken)}/{rounded(given)}"
        parts.append(f"{zone} {rounded(given) if taken == given else both}")
    return _line_text(status, rate, parts)


def _line_text(status: PipelineStatus, rate: float, parts: list[str]) -> str:
    """Append the figures that every shape shows to those of the zones."""
    if quarantined := quarantined_by(status):
        parts.append(f"quarantined {rounded(quarantined)}")
    if status.lag is not None:
        parts.append(f"lag {rounded(status.lag)}")
    parts.append(f"{rounded(rate)} rows/s")
    return f"{status.pipeline}: " + "  ".join(parts) + notes_text(status)


def rounded(number: float) -> str:
    """Format a number in at most five characters: 950, 1.2k, 34k, 5.6M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            scaled = number / size
            return f"{scaled:.1f}{unit}" if scaled < 9.95 else f"{scaled:.0f}{unit}"
    return f"{number:.0f}"


def outcome_text(status: PipelineStatus) -> str:
    """`shop: raw 1,200/1,200  staging 1,200/1,190  in/out  quarantined 10`."""
    zones = zones_of(status).items()
    parts = [f"{zone} {taken:,}/{given:,}" for zone, (taken, given) in zones]
    parts.append("in/out")
    if quarantined := quarantined_by(status):
        parts.append(f"quarantined {quarantined:,}")
    return f"{status.pipeline}: " + "  ".join(parts)


def zones_of(status: PipelineStatus) -> dict[str, tuple[int, int]]:
    """Return the rows that went into and out of each zone; custom zones come last."""
    zones: dict[str, tuple[int, int]] = {}
    moved = [(flow.zone, flow.rows_in, flow.rows_out) for flow in status.flows]
    moved += [(view.zone, view.rows, view.rows) for view in status.views]
    for zone, rows_in, rows_out in moved:
        taken, given = zones.get(zone, (0, 0))
        zones[zone] = (taken + rows_in, given + rows_out)
    usual = [zone for zone in ZONES if zone in zones]
    return {zone: zones[zone] for zone in dict.fromkeys([*usual, *zones])}


def quarantined_by(status: PipelineStatus) -> int:
    return sum(flow.quarantined for flow in status.flows)


def print_status(status: PipelineStatus) -> None:
    """Print a pipeline as tables of its flows and views."""
    words = [status.state]
    if status.mode:
        words.append(status.mode)
    if status.updated_at:
        words.append(f"as of {status.updated_at}")
    print_line(f"{status.pipeline}: {', '.join(words)}")
    if status.lake:
        print_line(f"  lake: {status.lake}")
    if files := files_text(status):
        print_line(f"  {files}")
    for view in status.moving:
        print_line(
            f"  {view} is moving to {status.architecture}: readers see the old tables until the"
            " new ones have caught up"
        )
    if status.flows:
        _print_flows(status)
    if quarantined_by(status):
        print_line(
            "`quarantined` counts rows since the flows began, which a redrive does not reduce;"
            f" for the current rows: headrace tables list{_lake_option(status)}"
        )
    _print_times(status)
    for one in status.parts:
        if one.error:
            warn(f"{one.name}: {one.error}")
    for text in status.stale:
        warn(text)


def files_text(status: PipelineStatus) -> str:
    """Compare the files of the last run with the files in the folder."""
    ran, folder = status.fingerprint, status.folder_fingerprint
    if not ran:
        return f"files in its folder: {folder}" if folder else ""
    label = f" (version {status.version})" if status.version else ""
    known = f"files of the latest run: {ran}{label}"
    if not folder:
        return known
    if ran == folder:
        return f"{known}; the folder has the same files"
    return f"{known}; the folder has changed since, {folder}, and the next start uses it"


def print_backfilled(outcomes: "Mapping[str, Outcome]", *, is_limited: bool) -> None:
    """Print the backfilled rows of each flow, or that there were none."""
    since = " from that time on" if is_limited else ""
    for name, outcome in outcomes.items():
        if outcome.is_idle:
            print_line(f"{name}: no unread older records{since} in its topics")
    read = {name: outcome for name, outcome in outcomes.items() if not outcome.is_idle}
    if read:
        print_table(
            ("flow", "rows in", "rows out", "quarantined", "dropped"),
            [(n, o.rows_in, o.rows_out, o.quarantined, o.dropped) for n, o in read.items()],
        )


def _lake_option(status: PipelineStatus) -> str:
    return f" --lake {status.lake}" if status.lake else ""


def _print_flows(status: PipelineStatus) -> None:
    """Print the totals of each flow; a target of another name follows an arrow."""
    print_rows(
        status.flows,
        {
            "flow": lambda one: one.flow + (f" > {one.target}" if one.flow != one.target else ""),
            "state": lambda one: one.state,
            "in": lambda one: f"{one.rows_in:,}",
            "out": lambda one: f"{one.rows_out:,}",
            "quarantined": lambda one: f"{one.quarantined:,}",
            "dropped": lambda one: f"{one.dropped:,}",
            "lag": lambda one: None if one.lag is None else f"{one.lag:,}",
        },
    )


def _print_times(status: PipelineStatus) -> None:
    """Print the last and next batch of each flow, and the last and next refresh of each view."""
    rows: list[tuple[str | int | None, ...]] = [
        (one.flow, None, one.last_at, one.last_duration_ms, one.next_at) for one in status.flows
    ]
    rows += [
        (one.view, f"{one.rows:,}", one.last_at, one.last_duration_ms, one.next_at)
        for one in status.views
    ]
    if rows:
        print_table(
            ("flow or view", "rows", "last", "took ms", "next"),
            [(name, count, _clock(at), ms, _clock(due)) for name, count, at, ms, due in rows],
        )


def _clock(moment: str | int | None) -> str | None:
    """Return a time in UTC without what every row shares: `2026-03-01 12:00:00`."""
    return None if moment is None else str(moment).removesuffix("+00:00").replace("T", " ")
