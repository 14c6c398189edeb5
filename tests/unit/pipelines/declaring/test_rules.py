"""Rules about rows, as their SQL and as what becomes of rows that break them."""

import datetime as dt
from collections.abc import Callable

import pytest

from headrace.pipelines.declaring import rules
from headrace.pipelines.model import RowRule, Violation
from headrace.pipelines.problems import PipelineError


def test_functions_of_rules_build_conditions() -> None:
    assert rules.not_null("a", "b.c") == RowRule("`a` IS NOT NULL AND `b`.`c` IS NOT NULL")
    assert rules.between("n", 1, 2.5) == RowRule("`n` IS NOT NULL AND `n` BETWEEN 1 AND 2.5d")
    assert rules.matches("s", r"^\d'") == RowRule(r"`s` IS NOT NULL AND `s` RLIKE '^\\d\''")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (3, "3"),
        (0.5, "0.5d"),
        (float("-inf"), "double('-inf')"),
        ("it's", r"'it\'s'"),
        (dt.date(2026, 3, 1), "date '2026-03-01'"),
        (dt.datetime(2026, 3, 1, 12), "timestamp '2026-03-01 12:00:00'"),
    ],
)
def test_values_become_literals(value: object, text: str) -> None:
    assert rules.literal(value) == text


def test_a_value_that_sql_has_no_word_for_is_refused() -> None:
    with pytest.raises(PipelineError, match="cannot be written in SQL"):
        rules.literal(object())


def test_a_batch_has_no_rows_to_drop() -> None:
    with pytest.raises(PipelineError, match="let it warn or fail"):
        rules.expectation("many", rules.rows(least=1), "drop")
    assert rules.expectation("many", rules.rows(least=1), "fail").on_violation is Violation.FAIL


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rules.not_null(), "needs the name of a column"),
        (lambda: rules.unique(), "needs the name of a column"),
        (lambda: rules.fresh("ts", "soon"), "not an interval"),
        (lambda: rules.rows(3, 2), "at least 3 and at most 2"),
        (lambda: rules.expectation("x", " ", "warn"), "has no condition"),
        (lambda: rules.expectation("x", "a > 1", "explode"), "warn, drop, quarantine, fail"),
    ],
)
def test_a_meaningless_rule_is_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(PipelineError, match=words):
        make()


def test_a_rule_outside_of_a_pipeline_is_refused_with_advice() -> None:
    with pytest.raises(PipelineError, match="headrace pipelines run FOLDER"):
        rules.expect("x", "a > 1")(lambda: None)
