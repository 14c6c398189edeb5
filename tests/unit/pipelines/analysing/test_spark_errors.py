"""Spark's complaints in one line."""

import logging

import pytest

from headrace.pipelines.analysing.spark_errors import line_of, quiet, short_text


class Complaint(Exception):
    """An error as Spark's are: of a module of pyspark."""


Complaint.__module__ = "pyspark.errors.exceptions.captured"


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `x` cannot be resolved. Did you"
            " mean one of the following? [`id`]. SQLSTATE: 42703; line 4 pos 7;\n'Project ['x]\n"
            "+- ~SubqueryAlias orders\n",
            "A column with name `x` cannot be resolved. Did you mean one of the following? [`id`]",
        ),
        (
            "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'm'. SQLSTATE: 42601 (line 4, pos 16)\n"
            "\n== SQL ==\n\nselect x fro m\n---------^^^\n",
            "Syntax error at or near 'm'",
        ),
        (
            "Sorting is not supported on streaming DataFrames;\n~Sort [value#1L ASC], true\n+- ~S",
            "Sorting is not supported on streaming DataFrames",
        ),
        (
            "[A.B] The view `__headrace_12_raw_orders` is wrong. SQLSTATE: 00000",
            "The view raw_orders is wrong",
        ),
    ],
)
def test_error_texts_omit_plans_codes_and_generated_names(message: str, text: str) -> None:
    assert short_text(Complaint(message)) == text


def test_some_complaints_get_advice() -> None:
    message = "[STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION] Invalid streaming output mode: append."
    assert "declare the table's keys" in short_text(Complaint(message))


def test_other_errors_are_reported_with_their_class() -> None:
    assert short_text(ZeroDivisionError("division by zero\nmore")) == (
        "ZeroDivisionError: division by zero"
    )
    assert short_text(KeyError()) == "KeyError"


def test_the_line_is_found_in_both_of_sparks_spellings() -> None:
    assert line_of(Complaint("... SQLSTATE: 42703; line 4 pos 7;\n'Project")) == 4
    assert line_of(Complaint("... (line 12, pos 16)\n\n== SQL ==")) == 12
    assert line_of(Complaint("nowhere")) is None


def test_pyspark_is_quiet_for_a_while_only() -> None:
    logger = logging.getLogger("SQLQueryContextLogger")
    with quiet():
        assert logger.disabled
    assert not logger.disabled
