"""Contexts and subjects by their names."""

import pytest

from headrace.serdes.subject_names import (
    QualifiedSubject,
    SubjectMatch,
    SubjectPrefix,
    is_valid_subject,
    normalized,
    normalized_context,
    qualified_by,
)


@pytest.mark.parametrize(
    ("text", "context", "subject"),
    [
        ("orders", ".", "orders"),
        (":.staging:orders", ".staging", "orders"),
        (":.staging:", ".staging", ""),
        (":.staging", ".staging", ""),
        (":.:orders", ".", "orders"),
        (":.a:b:c", ".a", "b:c"),
        (":*:orders", "*", "orders"),
        (":orders", ".", ":orders"),
        ("", ".", ""),
    ],
)
def test_a_name_has_a_context_and_a_subject(text: str, context: str, subject: str) -> None:
    assert QualifiedSubject.parse(text) == (context, subject)


def test_the_default_context_is_not_spelled_out() -> None:
    assert normalized(":.:orders") == "orders"


@pytest.mark.parametrize("text", ["staging", ".staging", ":.staging:", ":.staging"])
def test_a_context_has_one_prefix(text: str) -> None:
    assert normalized_context(text) == ":.staging:"


def test_the_default_context_has_no_prefix() -> None:
    assert normalized_context(".") == ""


def test_a_context_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot contain a colon"):
        normalized_context("a:b")


def test_a_reference_means_a_subject_of_the_same_context() -> None:
    assert str(qualified_by(":.staging:orders", "address")) == ":.staging:address"


def test_a_reference_may_name_another_context() -> None:
    assert str(qualified_by(":.staging:orders", ":.live:address")) == ":.live:address"


@pytest.mark.parametrize("text", ["a\x00b", "a\nb", "\x7f", "__GLOBAL", "__EMPTY", ":.__GLOBAL:a"])
def test_invalid_names_of_subjects_are_refused(text: str) -> None:
    assert not is_valid_subject(text)


def test_settings_may_be_made_for_every_context() -> None:
    assert is_valid_subject(":.__GLOBAL:", for_settings=True)


@pytest.mark.parametrize(
    ("prefix", "covered"),
    [
        ("", ["orders", "orders-key"]),
        ("orders-", ["orders-key"]),
        (":*:", ["orders", "orders-key", ":.staging:orders", ":.stale:x"]),
        (":*:orders", ["orders", "orders-key", ":.staging:orders"]),
        (":.staging:", [":.staging:orders"]),
        (":.staging:x", []),
        (":.sta", [":.staging:orders", ":.stale:x"]),
    ],
)
def test_a_prefix_without_a_context_covers_the_default_context(
    prefix: str, covered: list[str]
) -> None:
    subjects = ["orders", "orders-key", ":.staging:orders", ":.stale:x"]
    assert [name for name in subjects if SubjectPrefix(prefix).covers(name)] == covered


@pytest.mark.parametrize(
    ("text", "covered"),
    [
        (None, ["orders", ":.staging:orders"]),
        ("orders", ["orders"]),
        ("", ["orders"]),
        (":.staging:", [":.staging:orders"]),
        (":.__GLOBAL:", ["orders", ":.staging:orders"]),
    ],
)
def test_a_context_covers_its_subjects(text: str | None, covered: list[str]) -> None:
    subjects = ["orders", ":.staging:orders"]
    assert [name for name in subjects if SubjectMatch(text).covers(name)] == covered
