"""Figures go into the document and leave its words alone."""

import pytest

from benchmarks.report import BEGIN, END, table, with_figures

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
