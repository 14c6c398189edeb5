"""Patterns of consumers: RE2's meaning in linear time, by google-re2 and by the fallback."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.coordination.regular_expressions import Pattern, RegularExpression, by_re2, by_states
from headrace.errors import InvalidRegularExpression

Compile = Callable[[str], Pattern]

both = pytest.mark.parametrize("compile_pattern", [by_re2, by_states])


@both
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
        ("(?:^a|b)+$", "abb", True),
        ("(?:^a|b)+$", "ba", False),
        (r"a\z", "a", True),
        ("", "", True),
        ("", "a", False),
        ("a|", "", True),
        (r"[\w.-]+", "a_b.c-d", True),
    ],
)
def test_a_pattern_matches_whole_names(
    compile_pattern: Compile, pattern: str, text: str, matches: bool
) -> None:
    """CON-1."""
    assert bool(compile_pattern(pattern).fullmatch(text)) is matches


@both
@pytest.mark.parametrize(
    "pattern", ["(", "[a", "*", r"(a)\1", "(?=a)b", "(?<!a)b", "a{1001}", "(?>a)b"]
)
def test_constructs_that_re2_lacks_are_rejected(compile_pattern: Compile, pattern: str) -> None:
    with pytest.raises(InvalidRegularExpression, match="is not a valid regular expression"):
        compile_pattern(pattern)


def test_a_long_pattern_is_refused() -> None:
    with pytest.raises(InvalidRegularExpression):
        RegularExpression("a" * 1_001)


@pytest.mark.parametrize("pattern", [r"\bcat\b.*", "(?m)^a$"])
def test_re2_matches_patterns_that_the_fallback_refuses(pattern: str) -> None:
    assert RegularExpression(pattern).matches("cat food") is bool(
        by_re2(pattern).fullmatch("cat food")
    )
    with pytest.raises(InvalidRegularExpression):
        by_states(pattern)


@both
@pytest.mark.parametrize("pattern", ["(a+)+", "(a|a)*", "(a*)*b", ".*.*.*.*.*.*x", "(a?){50}a{50}"])
def test_no_pattern_takes_long(compile_pattern: Compile, pattern: str) -> None:
    """Python's own matcher would not come back from some of these."""
    assert bool(compile_pattern(pattern).fullmatch("a" * 249)) is (pattern in ("(a+)+", "(a|a)*"))


@both
def test_repetitions_of_repetitions_are_bounded(compile_pattern: Compile) -> None:
    with pytest.raises(InvalidRegularExpression):
        compile_pattern("((a{100}){100}){100}")


_ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", "(?:a|b)", "(?:ab)"])
_PIECES = st.builds(lambda atom, times: atom + times, _ATOMS, st.sampled_from(["", "*", "+", "?"]))


@both
@given(pattern=st.lists(_PIECES, max_size=5).map("".join), text=st.text("abc", max_size=6))
def test_matches_agree_with_python(compile_pattern: Compile, pattern: str, text: str) -> None:
    expected = re.compile(pattern).fullmatch(text) is not None
    assert bool(compile_pattern(pattern).fullmatch(text)) is expected
