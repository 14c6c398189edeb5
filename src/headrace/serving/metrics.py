"""What the server counts, and the page that Prometheus reads."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from headrace.http.metrics import answer_families
from headrace.runtime.exposition import Family, Sample, counter, gauge, labels
from headrace.runtime.metrics import Durations
from headrace.runtime.process import process_families

if TYPE_CHECKING:
    from headrace.serving.database import Publication
    from headrace.serving.lanes import Lane


_PREFIX = "headrace_serving"


class ServingMetrics:
    """Plain integers; threads add to them and a lost addition is no harm."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, int], int] = {}
        """By kind of question and HTTP status."""
        self.durations: dict[str, Durations] = {}
        self.cut_answers = 0
        self.loads = 0
        self.appends = 0
        self.load_failures = 0
        self.evictions = 0

    def answered(self, kind: str, status: int, duration_ns: int) -> None:
        key = (kind, status)
        self.answers[key] = self.answers.get(key, 0) + 1
        self.durations.setdefault(kind, Durations()).add_ns(duration_ns)


def families(
    metrics: ServingMetrics, publications: Iterable["Publication"], lanes: Iterable["Lane"]
) -> Iterator[Family]:
    """Everything, as it is now."""
    yield from answer_families(_PREFIX, metrics.answers, metrics.durations)
    yield from _totals(metrics)
    yield from _lanes(list(lanes))
    yield from _tables(list(publications))
    yield from process_families()


def _totals(metrics: ServingMetrics) -> Iterator[Family]:
    yield counter(f"{_PREFIX}_cut_answers_total", "Answers that lack rows.", metrics.cut_answers)
    yield counter(f"{_PREFIX}_loads_total", "Tables that were loaded whole.", metrics.loads)
    yield counter(
        f"{_PREFIX}_appends_total", "Loaded tables that new files were added to.", metrics.appends
    )
    yield counter(
        f"{_PREFIX}_load_failures_total", "Tables that could not be read.", metrics.load_failures
    )
    yield counter(
        f"{_PREFIX}_evictions_total", "Loaded tables that were given up.", metrics.evictions
    )


def _lanes(lanes: list["Lane"]) -> Iterator[Family]:
    yield Family(
        f"{_PREFIX}_under_way",
        "gauge",
        "Questions that are answered or wait for it.",
        [Sample(lane.under_way, labels(operation=lane.name)) for lane in lanes],
    )


def _tables(publications: list["Publication"]) -> Iterator[Family]:
    loaded = [one for one in publications if one.is_loaded]
    scanned = [one for one in publications if one.dataset is not None]
    yield gauge(
        f"{_PREFIX}_loaded_bytes",
        "Memory of loaded tables, estimated.",
        sum(one.size_bytes for one in loaded),
    )
    yield gauge(f"{_PREFIX}_loaded_tables", "Tables in memory.", len(loaded))
    yield gauge(f"{_PREFIX}_scanned_tables", "Tables whose files are scanned.", len(scanned))
    yield Family(
        f"{_PREFIX}_table_version",
        "gauge",
        "The version of each table in use that queries see.",
        [Sample(one.version, labels(table=one.name)) for one in (*loaded, *scanned)],
    )
