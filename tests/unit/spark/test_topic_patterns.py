"""Patterns of topics' names."""

import re

import pytest

from headrace.spark.topic_patterns import is_like, pattern_complaint, whole


@pytest.mark.parametrize(
    ("pattern", "error"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("ord(ers", r"is not a valid regular expression: missing \)"),
        (r"\p{Lower}+", "by Python's rules, not Java's"),
        (r"\Qa.b\E", "by Python's rules, not Java's"),
        ("[a-z&&[^b]]", "read differently by Java"),
    ],
)
def test_patterns_that_java_would_match_differently_are_refused(pattern: str, error: str) -> None:
    assert re.search(error, pattern_complaint(pattern) or "")


def test_a_pattern_is_found_anywhere_in_a_name() -> None:
    assert pattern_complaint("ord") is None
    assert is_like("ord", "my-orders")
    assert not is_like("^ord", "my-orders")


@pytest.mark.parametrize("pattern", ["orders|bills", "(?i)ORDERS|bills", "orders$|bills"])
def test_a_whole_pattern_is_like_whole_names_only(pattern: str) -> None:
    names = ("orders", "bills", "orders-x", "x-bills")
    assert [name for name in names if is_like(whole(pattern), name)] == ["orders", "bills"]
