"""Queries that Spark would reject are reported before it starts; others are left to it."""

import pytest

from headrace.pipelines.declaring.sql_mistakes import mistake_in
from headrace.serdes.sql_tokens import tokens
from tests.builders.mistyped_sql import MISTYPED, ODD, UNMATCHED


def told(sql: str) -> str | None:
    mistake = mistake_in(tokens(sql))
    return None if mistake is None else f"{mistake.line}: {mistake.text}"


@pytest.mark.parametrize(("sql", "word", "meant"), MISTYPED)
def test_a_mistyped_keyword_is_reported(sql: str, word: str, meant: str) -> None:
    """Spark's start is not needed to find a mistyped word."""
    found = told(f"\n{sql}")
    assert found is not None
    assert found.startswith(f"2: {word} does not fit here")
    assert f"did you mean {meant}" in found


@pytest.mark.parametrize(("sql", "message"), UNMATCHED)
def test_brackets_that_do_not_match_are_reported(sql: str, message: str) -> None:
    assert told(sql) == message


@pytest.mark.parametrize("sql", ODD)
def test_text_that_spark_accepts_is_not_reported(sql: str) -> None:
    assert told(sql) is None


def test_dollar_quoted_text_is_left_to_spark() -> None:
    assert told("SELECT $$ a ( $$") is None
