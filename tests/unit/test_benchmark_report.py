"""Figures go into the document and leave its words alone."""

import pytest

from benchmarks import spark_source
from benchmarks.report import BEGIN, END, table, with_figures
from benchmarks.spark_targets import BOUNDS, TARGETS, WORKER, Bound, Target, above, missed
from benchmarks.workloads import Figure

DOCUMENT = f"# Performance\n\nHow to read it.\n\n{BEGIN}\n\nold\n{END}\n\nWhat we make of it.\n"


def test_only_what_is_between_the_marks_is_replaced() -> None:
    written = with_figures(DOCUMENT, "new")
    assert written == DOCUMENT.replace("old", "new")
    assert with_figures(written, "old") == DOCUMENT


@pytest.mark.parametrize("broken", ["", BEGIN, END, f"{END} {BEGIN}"])
def test_a_document_without_a_place_for_figures_is_refused(broken: str) -> None:
    with pytest.raises(ValueError, match="no place for figures"):
        with_figures(broken, "new")


def test_the_table_has_medians_and_their_ratio() -> None:
    figure = ("start-up", "s")
    results = {"headrace": {figure: [3.0, 1.0, 2.0]}, "kafka": {figure: [8.0]}}
    assert table(results).splitlines()[-1] == "| start-up | s | 2 | 8 | 0.25 |"


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_spark_s_source_fails_below_what_is_asked_of_it(target: Target) -> None:
    """Rows a second, and latency, beside the stock connector's."""
    figure = (f"{target.name}, 1 M records", target.unit)
    enough = {"Headrace": {figure: [9.0, 1.0, 1.0]}, "connector": {figure: [target.times_min]}}
    assert list(missed(enough)) == []
    less = {"Headrace": {figure: [1.1]}, "connector": {figure: [target.times_min]}}
    (failure,) = missed(less)
    assert f"{target.times_min / 1.1:.2f} times better" in failure
    assert f"{target.times_min:g} is asked for" in failure


@pytest.mark.parametrize(("ours", "code"), [(1.0, 0), (9.0, 1)])
def test_the_benchmark_of_spark_s_source_ends_with_an_error_if_it_is_slow(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ours: float, code: int
) -> None:
    figure = ("read 1 M records to noop", "s per million")
    results = {"Headrace": {figure: [ours]}, "connector": {figure: [9.0]}}
    monkeypatch.setattr(spark_source, "run", lambda *_, **__: results)
    monkeypatch.setattr("sys.argv", ["spark_source"])
    assert spark_source.main() == code
    assert ("missed: read 1 M records to noop" in capsys.readouterr().err) == bool(code)


def test_a_result_without_its_counterpart_misses_no_target() -> None:
    alone = {"Headrace": {("read 1 M records to noop", "s per million"): [99.0]}}
    assert list(missed(alone)) == []
    assert list(missed({**alone, "connector": {}})) == []


def test_a_python_worker_that_was_too_large_once_is_reported() -> None:
    (failure,) = missed({"Headrace": {(WORKER.name, WORKER.unit): [100.0, 601.0, 100.0]}})
    assert "601.0 MB" in failure


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: bound.name)
def test_a_figure_above_its_bound_is_reported(bound: Bound) -> None:
    """Worker's memory, a dry run of a hundred tables, lookups by key."""
    name = f"{bound.name}, p99"
    assert list(above([Figure(name, bound.unit, bound.value_max)])) == []
    (failure,) = above([Figure(name, bound.unit, bound.value_max + 1)])
    assert name in failure


@pytest.mark.parametrize("load", ["read {} to noop", "topic to typed Parquet, {}"])
def test_time_that_grows_faster_than_the_records_is_reported(load: str) -> None:
    def reads(largest: float) -> dict[str, dict[tuple[str, str], list[float]]]:
        costs = {"1": 1.0, "3": 9.0, "10": largest}
        named = {load.format(f"{count} M records"): cost for count, cost in costs.items()}
        beside = {"another, 10 M records": 99.0}
        figures = {**named, **beside}
        return {"Headrace": {(name, "s per million"): [cost] for name, cost in figures.items()}}

    assert list(missed(reads(1.2))) == []
    (failure,) = missed(reads(1.4))
    reported = load.format("10 M records")
    assert failure == f"{reported}: each costs 1.40 times one of 1 M, and may cost 1.25 times"
