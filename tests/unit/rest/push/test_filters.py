"""Filters of records, and invalid ones."""

from typing import Any

import pytest

from headrace.http.errors import HttpError
from headrace.rest.push.filters import compiled

RECORD: dict[str, Any] = {
    "key": "k1",
    "value": {"n": 3, "tags": ["a"], "text": "x" * 100},
    "headers": {"region": "eu"},
    "topic": "orders",
    "partition": 0,
    "offset": 7,
    "timestamp": 1_700_000_000_000,
}


@pytest.mark.parametrize(
    ("text", "is_wanted"),
    [
        ("value.n > 2", True),
        ('headers.region == "us"', False),
        ('headers["region"] == "eu" && offset % 2 == 1', True),
        ('"a" in value.tags', True),
        ("has(value.missing)", False),
        ("value.missing.deeper == 1", False),
        ('key.matches("^k[0-9]$")', True),
        ('value.n + "a" == 1', False),
        ("value.n", False),
        ("1 / 0 == 1", False),
    ],
)
def test_a_filter_accepts_records_for_which_it_is_true(text: str, is_wanted: bool) -> None:
    assert compiled(text).accepts(RECORD) is is_wanted


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "characters"),
        ("value.n >", "Syntax error"),
        ("price > 1", "'price'"),
        ("value.tags.all(key, true)", "iterates over lists"),
        ("value.tags.map (key, key) == []", "iterates over lists"),
        ('duration("1s") > duration("2s")', "duration()"),
        ("(" * 500, "Syntax error"),
        ("1 " + "+ 1" * 9 + " == 1", "operators +"),
        ("x" * 2_000, "characters"),
    ],
)
def test_an_invalid_filter_is_rejected_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(HttpError) as refused:
        compiled(text)
    assert (refused.value.status, words in str(refused.value)) == (400, True), refused.value
