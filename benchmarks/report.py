"""The medians as a Markdown table, and its place in a document."""

import statistics
from collections.abc import Mapping, Sequence

from benchmarks.workloads import Figure

BEGIN = "<!-- figures: made by `make bench ARGS=--write`; words about them go outside -->"
END = "<!-- end of figures -->"

# By target and by figure (name, unit): one value per round.
Results = Mapping[str, Mapping[tuple[str, str], Sequence[float]]]


def table(results: Results) -> str:
    """One line per figure, one column per target, and the ratio to the last target."""
    targets = list(results)
    compared = len(targets) > 1
    heads = ["", "unit", *targets, *(["ratio"] if compared else [])]
    lines = [row(heads), row(["---", "---", *["---:"] * (len(heads) - 2)])]
    for name, unit in results[targets[0]]:
        values = [median(results[target].get((name, unit), ())) for target in targets]
        cells = [name, unit, *map(shown, values)]
        if compared:
            cells.append(ratio(values[0], values[-1]))
        lines.append(row(cells))
    return "\n".join(lines) + "\n"


def with_figures(document: str, figures: str) -> str:
    """The document with new figures in the place of the old and every word of its own kept."""
    before, begin, rest = document.partition(BEGIN)
    _old, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no place for figures: it needs the lines {BEGIN} and {END}")
    return f"{before}{begin}\n\n{figures}\n{end}{after}"


def collect(figures: Sequence[Figure], into: dict[tuple[str, str], list[float]]) -> None:
    for figure in figures:
        into.setdefault((figure.name, figure.unit), []).append(figure.value)


def median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def ratio(ours: float | None, theirs: float | None) -> str:
    return "" if ours is None or not theirs else f"{ours / theirs:.2f}"


def shown(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
