"""Java's property text: every rule of the format, and text that comes back as it went."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import InvalidConfig
from headrace.settings.properties import parse, parse_assignment, render


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", {"a": "1"}),
        ("a = 1 ", {"a": "1 "}),
        ("a: 1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("a==b", {"a": "=b"}),
        ("# comment\n! comment\n\n  \na=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1,\\\n   2", {"a": "1,2"}),
        ("a=1\\", {"a": "1"}),
        ("a=back\\\\slash", {"a": "back\\slash"}),
        ("a=even\\\\\nb=2", {"a": "even\\", "b": "2"}),
        ("a\\=b=c", {"a=b": "c"}),
        ("a=\\t\\n\\u00e9\\q", {"a": "\t\n\u00e9q"}),
        ("a=\\ud83d\\ude00", {"a": "\U0001f600"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\\\n# not a comment", {"a": "1# not a comment"}),
    ],
)
def test_text_is_read_as_java_reads_it(text: str, expected: dict[str, str]) -> None:
    assert parse(text) == expected


def test_an_escape_without_four_digits_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="hexadecimal"):
        parse("a=\\u12")


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.text()))
def test_rendered_properties_are_read_back(properties: dict[str, str]) -> None:
    assert parse(render(properties, comment="two\nlines")) == properties


def test_an_assignment_is_split_at_the_first_equals_sign() -> None:
    assert parse_assignment("listeners=A://h:1?x=y") == ("listeners", "A://h:1?x=y")


@pytest.mark.parametrize("text", ["no-sign", "=value", ""])
def test_an_invalid_assignment_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfig, match="name=value"):
        parse_assignment(text)
