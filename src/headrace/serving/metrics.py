"""The metrics of the server."""

from collections.abc import Iterable, Iterator

from headrace.http.metrics import HttpMetrics, answer_families
from headrace.runtime.exposition import Family, Sample, counter, gauge, labels
from headrace.runtime.process import process_families
from headrace.serving.database import Publication
from headrace.serving.workers import WorkerPool

_PREFIX = "headrace_serving"


class ServingMetrics:
    """Plain integers; threads add to them, and a lost addition does no harm."""

    def __init__(self) -> None:
        self.http = HttpMetrics()
        self.cut_answers = 0
        self.loads = 0
        self.appends = 0
        self.load_failures = 0
        self.evictions = 0


def families(
    metrics: ServingMetrics, publications: Iterable[Publication], pools: Iterable[WorkerPool]
) -> Iterator[Family]:
    yield from answer_families(_PREFIX, metrics.http)
    for name, help, value in (
        ("cut_answers", "Answers that were cut at a limit.", metrics.cut_answers),
        ("loads", "Tables loaded whole.", metrics.loads),
        ("appends", "Loaded tables that new files were appended to.", metrics.appends),
        ("load_failures", "Tables that could not be read.", metrics.load_failures),
        ("evictions", "Loaded tables that were evicted.", metrics.evictions),
    ):
        yield counter(f"{_PREFIX}_{name}_total", help, value)
    yield Family(
        f"{_PREFIX}_under_way",
        "gauge",
        "Requests that are being answered or waiting.",
        [Sample(pool.under_way, labels(operation=pool.name)) for pool in pools],
    )
    publications = list(publications)
    loaded = [one for one in publications if one.is_loaded]
    scanned = [one for one in publications if one.dataset is not None]
    loaded_bytes = sum(one.size_bytes for one in loaded)
    yield gauge(f"{_PREFIX}_loaded_bytes", "Estimated memory of loaded tables.", loaded_bytes)
    yield gauge(f"{_PREFIX}_loaded_tables", "Tables in memory.", len(loaded))
    yield gauge(f"{_PREFIX}_scanned_tables", "Tables whose files are scanned.", len(scanned))
    yield Family(
        f"{_PREFIX}_table_version",
        "gauge",
        "The visible version of each table in use.",
        [Sample(one.version, labels(table=one.name)) for one in (*loaded, *scanned)],
    )
    yield from process_families()
