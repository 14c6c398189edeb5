"""Targets for pipelines on Spark; `make bench-spark` fails when one is missed."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.report import Results, median
from benchmarks.workloads import Figure

GROWTH_MAX = 1.25
"""How much more a record of the longest read may cost than one of the shortest."""
_SIZED = re.compile(r"(?P<before>.*?)(?P<millions>[\d.]+) M records(?P<behind>.*)")
_PER_MILLION = "s per million"


@dataclass(frozen=True, slots=True)
class Bound:
    """An upper bound for the figures whose names begin with `name`."""

    name: str
    unit: str
    value_max: float


WORKER = Bound("largest Python worker so far", "MB", 600)
PLANNING = Bound("check with Spark", "s", 10)
LOOKUP_NAME = "lookup by key, {} asking"
"""The name of the figures, whose place is for how many ask at once."""
LOOKUP = Bound(LOOKUP_NAME.format(1), "ms", 10)
"""With several, they and the server share the processors; their figures are only shown."""
BOUNDS = (WORKER, PLANNING, LOOKUP)


@dataclass(frozen=True, slots=True)
class Target:
    """A lower bound for the stock connector's figure divided by ours, by the names' beginning."""

    name: str
    unit: str
    times_min: float


TARGETS = (
    Target("read ", _PER_MILLION, 1.5),
    Target("JSON to typed columns", _PER_MILLION, 3.0),
    Target("topic to typed Parquet", _PER_MILLION, 2.4),
    Target("micro-batch latency", "ms p50", 1.0),
)


def verdict(failures: Iterable[str]) -> int:
    """Say what was missed; the exit code of a benchmark."""
    code = 0
    for failure in failures:
        print(f"missed: {failure}", file=sys.stderr)
        code = 1
    return code


def above(figures: Iterable[Figure]) -> Iterator[str]:
    """A sentence for each figure that is larger than it may be."""
    for figure in figures:
        for bound in BOUNDS:
            is_meant = figure.name.startswith(bound.name) and figure.unit == bound.unit
            if is_meant and figure.value > bound.value_max:
                yield (
                    f"{figure.name}: {figure.value:.1f} {bound.unit},"
                    f" and may be {bound.value_max:g}"
                )


def missed(results: Results) -> Iterator[str]:
    """A sentence for each target that the medians miss; what was not measured misses none."""
    ours, *others = results.values()
    for (name, unit), values in ours.items():
        yield from above([Figure(name, unit, max(values))])
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
    yield from _growing(ours)


def _growing(ours: Mapping[tuple[str, str], Sequence[float]]) -> Iterator[str]:
    """A sentence for each load whose time grows faster than the number of records."""
    loads: dict[str, dict[float, float]] = {}
    for (name, unit), values in ours.items():
        found = _SIZED.fullmatch(name)
        if unit == _PER_MILLION and found is not None:
            load = found["before"] + "{:g} M records" + found["behind"]
            loads.setdefault(load, {})[float(found["millions"])] = median(values) or 0.0
    for load, costs in loads.items():
        least, most = min(costs), max(costs)
        if costs[most] > costs[least] * GROWTH_MAX:
            yield (
                f"{load.format(most)}: each costs {costs[most] / costs[least]:.2f} times one of"
                f" {least:g} M, and may cost {GROWTH_MAX:g} times"
            )
