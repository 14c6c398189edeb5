"""What `format("headrace")` must reach beside the stock connector, or `make bench-spark` fails."""

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.report import Results, median

WORKER = ("largest Python worker so far", "MB")
WORKER_MEGABYTES_MAX = 600


@dataclass(frozen=True, slots=True)
class Target:
    """How many times less than the connector a figure must be, whose name begins so."""

    name: str
    unit: str
    times_min: float


TARGETS = (
    Target("read ", "s per million", 1.5),
    Target("JSON to typed columns", "s per million", 3.0),
    Target("topic to typed Parquet", "s per million", 2.4),
    Target("micro-batch latency", "ms p50", 1.0),
)


def missed(results: Results) -> Iterator[str]:
    """A sentence for each target that the medians miss; what was not measured misses none."""
    ours, *others = results.values()
    for (name, unit), values in ours.items():
        if (name, unit) == WORKER and max(values) > WORKER_MEGABYTES_MAX:
            yield f"the {name} has {max(values):.0f} MB, and may have {WORKER_MEGABYTES_MAX}"
        for target in TARGETS:
            theirs = median(others[0].get((name, unit), ())) if others else None
            if not name.startswith(target.name) or unit != target.unit or theirs is None:
                continue
            times = theirs / (median(values) or theirs)
            if times < target.times_min:
                yield (
                    f"{name}, {unit}: {times:.2f} times better than the connector,"
                    f" and {target.times_min:g} is asked for"
                )
