"""Queries that Spark would refuse, told before it is started, and all others left to it."""

import pytest

from headrace.pipelines.declaring.sql_mistakes import mistake_in
from headrace.pipelines.declaring.sql_text import tokens
from tests.mistyped_sql import MISTYPED, ODD, UNMATCHED


def told(sql: str) -> str | None:
    mistake = mistake_in(tokens(sql))
    return None if mistake is None else f"{mistake.line}: {mistake.text}"


@pytest.mark.parametrize(("sql", "word", "meant"), MISTYPED)
def test_a_word_that_is_nearly_one_of_sql_is_told(sql: str, word: str, meant: str) -> None:
    """Spark's start is not needed to find a mistyped word."""
    found = told(f"\n{sql}")
    assert found is not None
    assert found.startswith(f"2: {word} does not fit here")
    assert f"did you mean {meant}" in found


@pytest.mark.parametrize(("sql", "message"), UNMATCHED)
def test_brackets_that_do_not_match_are_told(sql: str, message: str) -> None:
    assert told(sql) == message


@pytest.mark.parametrize("sql", ODD)
def test_what_spark_accepts_is_left_to_it(sql: str) -> None:
    assert told(sql) is None


def test_where_only_spark_knows_what_is_a_text_nothing_is_told() -> None:
    assert told("SELECT $$ a ( $$") is None
