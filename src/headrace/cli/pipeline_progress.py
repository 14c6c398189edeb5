"""How pipelines stand, for people: a line that moves while they run, tables when asked."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.cli.output import print_line, print_table, warn
from headrace.cli.progress import ProgressLine

if TYPE_CHECKING:
    from headrace.pipelines.running.runner import PipelineRunner

_PLAIN_EVERY_S = 10.0
"""How often a line is printed where there is no terminal to write it over."""

Status = Mapping[str, Any]


class Screen:
    """Shows running pipelines: a line on a terminal, now and then one in a file."""

    def __init__(self) -> None:
        self._line = ProgressLine()
        self._plain_at_s = time.monotonic() + _PLAIN_EVERY_S
        self._rows: dict[str, int] = {}
        self._since_s = time.monotonic()
        self._told: set[str] = set()

    def show(self, runners: "list[PipelineRunner]") -> None:
        """Called about once a second while pipelines run."""
        from headrace.pipelines.running.status import status_of

        statuses = [status_of(runner, "running") for runner in runners]
        self._tell_errors(statuses)
        now_s = time.monotonic()
        if self._line.is_shown:
            self._line.show(self._text(statuses, now_s))
        elif now_s >= self._plain_at_s:
            self._plain_at_s = now_s + _PLAIN_EVERY_S
            print_line(self._text(statuses, now_s))

    def close(self) -> None:
        """Leave the line to what is printed next."""
        self._line.clear()

    def _text(self, statuses: Sequence[Status], now_s: float) -> str:
        rows = {status["pipeline"]: rows_of(status) for status in statuses}
        seconds = max(now_s - self._since_s, 1e-9)
        texts = [
            progress_text(
                one, (rows[one["pipeline"]] - self._rows.get(one["pipeline"], 0)) / seconds
            )
            for one in statuses
        ]
        self._rows, self._since_s = rows, now_s
        return "   ".join(texts)

    def _tell_errors(self, statuses: Sequence[Status]) -> None:
        """Say once what has gone wrong with a flow, while the others go on."""
        for status in statuses:
            for one in (*status["flows"], *status["views"]):
                text = f"{one.get('flow') or one.get('view')}: {one['error']}"
                if one["error"] and text not in self._told:
                    self._told.add(text)
                    self._line.clear()
                    warn(text)


def rows_of(status: Status) -> int:
    """The rows that all flows of a pipeline have taken in."""
    return sum(flow["rows_in"] for flow in status["flows"])


def outcome_text(status: Status) -> str:
    """`shop: raw 1,200/1,200  staging 1,200/1,190  in/out  quarantined 10`."""
    zones: dict[str, tuple[int, int]] = {}
    for flow in status.get("flows", ()):
        taken, given = zones.get(flow["zone"], (0, 0))
        zones[flow["zone"]] = (taken + flow["rows_in"], given + flow["rows_out"])
    for view in status.get("views", ()):
        taken, given = zones.get(view["zone"], (0, 0))
        zones[view["zone"]] = (taken + view["rows"], given + view["rows"])
    parts = [f"{zone} {taken:,}/{given:,}" for zone, (taken, given) in zones.items()]
    parts.append("in/out")
    if quarantined := sum(flow["quarantined"] for flow in status.get("flows", ())):
        parts.append(f"quarantined {quarantined:,}")
    return f"{status['pipeline']}: " + "  ".join(parts)


def progress_text(status: Status, rate: float) -> str:
    """The outcome so far, how much is yet to come, and how quickly it goes."""
    lags = [flow["lag"] for flow in status["flows"] if flow["lag"] is not None]
    lag = f"  lag {sum(lags):,}" if lags else ""
    return f"{outcome_text(status)}{lag}  {rate:,.0f} rows/s"


def print_status(status: Status) -> None:
    """A pipeline as tables of its flows and views."""
    words = [status["state"]]
    if status.get("mode"):
        words.append(status["mode"])
    if status.get("updated_at"):
        words.append(f"as of {status['updated_at']}")
    print_line(f"{status['pipeline']}: {', '.join(words)}")
    if status.get("lake"):
        print_line(f"  its lake is {status['lake']}")
    if flows := status.get("flows"):
        print_table(
            ("flow", "target", "state", "in", "out", "quarantined", "dropped", "lag", "last"),
            [
                (
                    flow["flow"],
                    flow["target"],
                    flow["state"],
                    f"{flow['rows_in']:,}",
                    f"{flow['rows_out']:,}",
                    f"{flow['quarantined']:,}",
                    f"{flow['dropped']:,}",
                    flow["lag"],
                    flow["last_at"],
                )
                for flow in flows
            ],
        )
    if views := status.get("views"):
        print_table(
            ("view", "rows", "last", "took ms", "next"),
            [
                (
                    view["view"],
                    f"{view['rows']:,}",
                    view["last_at"],
                    view["last_duration_ms"],
                    view["next_at"],
                )
                for view in views
            ],
        )
    for one in (*(status.get("flows") or ()), *(status.get("views") or ())):
        if one["error"]:
            warn(f"{one.get('flow') or one.get('view')}: {one['error']}")
