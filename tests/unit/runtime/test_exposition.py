"""The text format, judged by Prometheus' own parser."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from headrace.runtime.exposition import Family, Sample, counter, gauge, labels, render
from headrace.runtime.process import process_families


def values(families: Iterable[Family]) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    page = "".join(render(families))
    return {
        (sample.name, tuple(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r")))
def test_every_label_is_read_back(value: str) -> None:
    family = Family("some_metric", "gauge", "Help.", [Sample(1, labels(name=value))])
    assert values([family]) == {("some_metric", (("name", value),)): 1.0}


@given(st.floats(allow_nan=False))
def test_every_number_is_read_back(value: float) -> None:
    assert values([gauge("some_metric", "Help.", value)]) == {("some_metric", ()): value}


def test_help_is_one_line() -> None:
    page = "".join(render([counter("a_total", "two\nlines \\ more", 3)]))
    assert page == "# HELP a_total two\\nlines \\\\ more\n# TYPE a_total counter\na_total 3\n"


def test_a_family_without_samples_is_left_out() -> None:
    assert list(render([Family("a", "gauge", "Help.", [])])) == []


def test_a_long_page_comes_in_pieces() -> None:
    samples = [Sample(number, labels(number=number)) for number in range(5_000)]
    pieces = list(render([Family("a", "gauge", "Help.", samples)]))
    assert len(pieces) > 5
    assert all(piece.endswith("\n") for piece in pieces)
    assert "".join(pieces).count("\n") == 5_002


def test_the_process_exports_its_own_metrics() -> None:
    found = values(process_families())
    assert found["process_resident_memory_bytes", ()] > 1_000_000
    assert found["process_open_fds", ()] >= 3
    assert found["process_cpu_seconds_total", ()] > 0
    assert found["process_start_time_seconds", ()] > 1_600_000_000
