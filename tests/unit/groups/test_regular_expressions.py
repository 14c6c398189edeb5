"""Patterns of consumers: RE2's meaning, in linear time."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import InvalidRegularExpression
from headrace.groups.regular_expressions import RegularExpression


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("orders", "orders", True),
        ("orders", "orders-eu", False),
        ("orders.*", "orders-eu", True),
        ("^orders-(eu|us)$", "orders-us", True),
        ("(?i)ORDERS", "orders", True),
        (r"\d{2,3}", "12", True),
        (r"\d{2,3}", "1234", False),
        (r"[^a-c_]+", "xyz", True),
        (r"[^a-c_]+", "xbz", False),
        (r"a*?b+?", "aabb", True),
        (r"(?P<place>eu|us)\.x", "eu.x", True),
        (r"\bcat\b.*", "cat food", True),
        (r"a\z", "a", True),
        ("", "", True),
        ("", "a", False),
        ("a|", "", True),
        (r"[\w.-]+", "a_b.c-d", True),
    ],
)
def test_a_pattern_matches_whole_names(pattern: str, text: str, matches: bool) -> None:
    """CON-1."""
    assert RegularExpression(pattern).matches(text) is matches


@pytest.mark.parametrize(
    "pattern", ["(", "[a", "*", r"(a)\1", "(?=a)b", "(?<!a)b", "a{1001}", "a" * 1_001, "(?>a)b"]
)
def test_what_re2_does_not_have_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidRegularExpression):
        RegularExpression(pattern)


@pytest.mark.parametrize("pattern", ["(a+)+", "(a|a)*", "(a*)*b", ".*.*.*.*.*.*x", "(a?){50}a{50}"])
def test_no_pattern_takes_long(pattern: str) -> None:
    """Python's own matcher would not come back from some of these."""
    assert RegularExpression(pattern).matches("a" * 249) in (True, False)


def test_repetitions_of_repetitions_are_bounded() -> None:
    with pytest.raises(InvalidRegularExpression):
        RegularExpression("((a{100}){100}){100}")


_ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", "(?:a|b)", "(?:ab)"])
_PIECES = st.builds(lambda atom, times: atom + times, _ATOMS, st.sampled_from(["", "*", "+", "?"]))


@given(st.lists(_PIECES, max_size=5).map("".join), st.text("abc", max_size=6))
def test_python_agrees(pattern: str, text: str) -> None:
    expected = re.compile(pattern).fullmatch(text) is not None
    assert RegularExpression(pattern).matches(text) is expected
