"""How pipelines stand, for people: a line that moves while they run, tables when asked."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from headrace.cli.output import counted, print_line, print_table, warn
from headrace.cli.progress import ProgressLine
from headrace.pipelines.model import ZONES
from headrace.pipelines.status import PipelineStatus

if TYPE_CHECKING:
    from headrace.pipelines.running.reports import Outcome
    from headrace.pipelines.running.runner import PipelineRunner

_PLAIN_EVERY_S = 10.0
"""How often a line is printed where there is no terminal to write it over."""
_BETWEEN = "   "
_LOGGER = logging.getLogger("headrace")


class Screen:
    """Shows running pipelines: a line on a terminal, now and then one in a file.

    What is logged meanwhile gets lines of its own.
    """

    def __init__(self) -> None:
        self._line = ProgressLine()
        self._plain_at_s = time.monotonic() + _PLAIN_EVERY_S
        self._rows: dict[str, int] = {}
        self._since_s = time.monotonic()
        self._log = _LogLines(self._line)

    def __enter__(self) -> Self:
        _LOGGER.addHandler(self._log)
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the line to what is printed next."""
        _LOGGER.removeHandler(self._log)
        self._line.clear()

    def show(self, runners: "list[PipelineRunner]") -> None:
        """Called about once a second while pipelines run."""
        statuses = [runner.status for runner in runners]
        now_s = time.monotonic()
        if self._line.is_shown:
            self._line.show(fitted_text(statuses, self._rates(statuses, now_s), self._line.width))
        elif now_s >= self._plain_at_s:
            self._plain_at_s = now_s + _PLAIN_EVERY_S
            print_line(whole_text(statuses, self._rates(statuses, now_s)))

    def _rates(self, statuses: Sequence[PipelineStatus], now_s: float) -> list[float]:
        """The rows per second of each since this was last asked; earlier runs do not count."""
        seconds = max(now_s - self._since_s, 1e-9)
        rates = [
            (status.rows_in - self._rows.get(status.pipeline, status.rows_in)) / seconds
            for status in statuses
        ]
        self._rows = {status.pipeline: status.rows_in for status in statuses}
        self._since_s = now_s
        return rates


class _LogLines(logging.Handler):
    """Warnings and errors, each on a line of its own above the one that moves."""

    def __init__(self, line: ProgressLine) -> None:
        super().__init__(logging.WARNING)
        self._line = line

    def emit(self, record: logging.LogRecord) -> None:
        self._line.clear()
        warn(self.format(record))


def whole_text(statuses: Sequence[PipelineStatus], rates: Sequence[float]) -> str:
    """All that there is to say, however long it is."""
    return _BETWEEN.join(map(progress_text, statuses, rates))


def fitted_text(statuses: Sequence[PipelineStatus], rates: Sequence[float], width: int) -> str:
    """As much as fits: first rounded numbers, then one for a zone, then only the last, the rate."""
    shapes: tuple[Callable[[PipelineStatus, float], str], ...] = (
        progress_text,
        rounded_text,
        chain_text,
        last_zone_text,
        rate_text,
    )
    for shape in shapes:
        text = _BETWEEN.join(map(shape, statuses, rates))
        if len(text) <= width:
            return text
    return f"{counted(len(statuses), 'pipeline')}  {rounded(sum(rates))} rows/s"


def progress_text(status: PipelineStatus, rate: float) -> str:
    """The outcome so far, how much is yet to come, and how quickly it goes."""
    lag = "" if status.lag is None else f"  lag {status.lag:,}"
    if status.flows and not any(flow.batches or flow.rows_in for flow in status.flows):
        return f"{status.pipeline}: waiting for its first batch{lag}{notes_text(status)}"
    return f"{outcome_text(status)}{lag}  {rate:,.0f} rows/s{notes_text(status)}"


def rounded_text(status: PipelineStatus, rate: float) -> str:
    """`shop: raw 1.2k  staging 1.2k/1.1k  quarantined 10  lag 5  300 rows/s`."""
    return _rounded_text(status, rate, zones_of(status))


def chain_text(status: PipelineStatus, rate: float) -> str:
    """`shop: raw 1.2k>1.1k>refined 12  quarantined 10  lag 5  300 rows/s`: what has come out."""
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
    """`  1 flow failed, see status`: what is to be looked up there.

    That is flows that have ended for good while others go on, tables that are not as fresh as is
    expected of them, and views on their way to another architecture.
    """
    failed = sum(flow.state == "failed" for flow in status.flows)
    notes = [f"{counted(failed, 'flow')} failed"] if failed else []
    if status.stale:
        notes.append(f"{counted(len(status.stale), 'table')} stale")
    if status.moving:
        notes.append(f"{counted(len(status.moving), 'view')} on the way to {status.architecture}")
    return f"  {', '.join(notes)}, see status" if notes else ""


def _rounded_text(status: PipelineStatus, rate: float, zones: dict[str, tuple[int, int]]) -> str:
    parts = []
    for zone, (taken, given) in zones.items():
        both = f"{rounded(taken)}/{rounded(given)}"
        parts.append(f"{zone} {rounded(given) if taken == given else both}")
    return _line_text(status, rate, parts)


def _line_text(status: PipelineStatus, rate: float, parts: list[str]) -> str:
    """What is said of zones, and behind it what is said however little room there is."""
    if quarantined := quarantined_by(status):
        parts.append(f"quarantined {rounded(quarantined)}")
    if status.lag is not None:
        parts.append(f"lag {rounded(status.lag)}")
    parts.append(f"{rounded(rate)} rows/s")
    return f"{status.pipeline}: " + "  ".join(parts) + notes_text(status)


def rounded(number: float) -> str:
    """A number in at most five characters: 950, 1.2k, 34k, 5.6M."""
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
    """The rows that went into each zone and came out; zones of the user's own come last."""
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
    """A pipeline as tables of its flows and views."""
    words = [status.state]
    if status.mode:
        words.append(status.mode)
    if status.updated_at:
        words.append(f"as of {status.updated_at}")
    print_line(f"{status.pipeline}: {', '.join(words)}")
    if status.lake:
        print_line(f"  its lake is {status.lake}")
    if files := files_text(status):
        print_line(f"  {files}")
    for view in status.moving:
        print_line(
            f"  {view} is on the way to {status.architecture}: readers see the old tables until the"
            " new ones have caught up"
        )
    if status.flows:
        _print_flows(status)
    if quarantined_by(status):
        print_line(
            "quarantined is what flows have put there since they began, and a redrive does not"
            f" lower it; what is there now: headrace tables list{_lake_option(status)}"
        )
    if status.views:
        print_table(
            ("view", "rows", "last", "took ms", "next"),
            [
                (view.view, f"{view.rows:,}", view.last_at, view.last_duration_ms, view.next_at)
                for view in status.views
            ],
        )
    for one in status.parts:
        if one.error:
            warn(f"{one.name}: {one.error}")
    for text in status.stale:
        warn(text)


def files_text(status: PipelineStatus) -> str:
    """By which state of its files a pipeline runs or ran, and whether the folder has another."""
    ran, folder = status.fingerprint, status.folder_fingerprint
    if not ran:
        return f"the files in its folder are {folder}" if folder else ""
    label = f" (version {status.version})" if status.version else ""
    known = f"its files are {ran}{label}"
    if not folder:
        return known
    if ran == folder:
        return f"{known}, as in its folder"
    return f"{known}; those in its folder are others, {folder}, and count from the next start"


def print_backfilled(outcomes: "Mapping[str, Outcome]", *, is_limited: bool) -> None:
    """What became of the older records of each flow, or that there are none."""
    since = ", from that time on," if is_limited else ""
    for name, outcome in outcomes.items():
        if outcome.is_idle:
            print_line(f"{name}: its topics have nothing older{since} than what it has read")
    read = {name: outcome for name, outcome in outcomes.items() if not outcome.is_idle}
    if read:
        print_table(
            ("flow", "rows in", "rows out", "quarantined", "dropped"),
            [(n, o.rows_in, o.rows_out, o.quarantined, o.dropped) for n, o in read.items()],
        )


def _lake_option(status: PipelineStatus) -> str:
    return f" --lake {status.lake}" if status.lake else ""


def _print_flows(status: PipelineStatus) -> None:
    """What each flow has moved, and how its last batch was."""
    print_table(
        (
            *("flow", "target", "state", "in", "out", "quarantined", "dropped"),
            *("lag", "last", "took ms", "next"),
        ),
        [
            (
                flow.flow,
                flow.target,
                flow.state,
                f"{flow.rows_in:,}",
                f"{flow.rows_out:,}",
                f"{flow.quarantined:,}",
                f"{flow.dropped:,}",
                flow.lag,
                flow.last_at,
                flow.last_duration_ms,
                flow.next_at,
            )
            for flow in status.flows
        ],
    )
