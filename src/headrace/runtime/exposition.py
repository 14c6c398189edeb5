"""Prometheus' text format (version 0.0.4), written piece by piece.

A node with thousands of partitions has a page of megabytes. `render` yields it in pieces so that
the server can give way to clients in between and never holds the page as a whole.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from headrace.runtime.durations import Durations

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
QUANTILES = (0.5, 0.95, 0.99)
"""The usual quantiles of durations."""

_LINES_PER_PIECE = 500
_LABEL_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_HELP_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n"})


class Sample(NamedTuple):
    """One line: a value under a family's name with an optional ending such as `_sum`."""

    value: float
    labels: str = ""
    ending: str = ""


class Family(NamedTuple):
    """A metric: all lines with one name. `kind` is counter, gauge, summary or untyped."""

    name: str
    kind: str
    help: str
    samples: Iterable[Sample]


def labels(**pairs: str | int) -> str:
    """Labels ready for a line, in the order given."""
    inner = ",".join(
        f'{name}="{str(value).translate(_LABEL_ESCAPES)}"' for name, value in pairs.items()
    )
    return f"{{{inner}}}" if inner else ""


def counter(name: str, help: str, value: float) -> Family:
    """A total without labels; Prometheus wants its name to end in `_total`."""
    return Family(name, "counter", help, (Sample(value),))


def gauge(name: str, help: str, value: float) -> Family:
    """A gauge without labels."""
    return Family(name, "gauge", help, (Sample(value),))


def summary(
    name: str,
    help: str,
    series: Iterable[tuple[Mapping[str, str | int], Durations]],
    quantiles: Sequence[float] = QUANTILES,
) -> Family:
    """A summary of durations, with labels for each kind."""
    samples = [one for pairs, took in series for one in _summed(pairs, took, quantiles)]
    return Family(name, "summary", help, samples)


def render(families: Iterable[Family]) -> Iterator[str]:
    """The page in pieces; families without samples are left out."""
    lines: list[str] = []
    for family in families:
        is_first = True
        for sample in family.samples:
            if is_first:
                lines.append(f"# HELP {family.name} {family.help.translate(_HELP_ESCAPES)}\n")
                lines.append(f"# TYPE {family.name} {family.kind}\n")
                is_first = False
            lines.append(f"{family.name}{sample.ending}{sample.labels} {_number(sample.value)}\n")
            if len(lines) >= _LINES_PER_PIECE:
                yield "".join(lines)
                lines.clear()
    if lines:
        yield "".join(lines)


def _summed(
    pairs: Mapping[str, str | int], durations: Durations, quantiles: Sequence[float]
) -> Iterator[Sample]:
    values = durations.quantiles_ms(quantiles)
    for quantile, value in zip(quantiles, values, strict=True):
        yield Sample(value, labels(**pairs, quantile=str(quantile)))
    yield Sample(durations.sum_ms, labels(**pairs), "_sum")
    yield Sample(durations.count, labels(**pairs), "_count")


def _number(value: float) -> str:
    return repr(value) if isinstance(value, float) else str(int(value))
