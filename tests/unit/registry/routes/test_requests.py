"""Paths: contexts, aliases, and subjects with odd letters."""

import pytest

from headrace.http.errors import BadRequest
from headrace.registry.routes.requests import target_of, with_context


def unchanged(subject: str) -> str:
    return subject


def segments(path: bytes) -> str:
    return " ".join(target_of(path, unchanged).segments)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (b"/subjects/a/versions/1", "subjects a versions 1"),
        (b"/subjects/a/", "subjects a"),
        (b"/subjects/a%2Fb", "subjects a/b"),
        (b"/subjects/%C3%A9", "subjects é"),
        (b"/contexts", "contexts"),
        (b"/contexts/.x/subjects/a/versions", "subjects :.x:a versions"),
        (b"/contexts/x/subjects/:.y:a", "subjects :.y:a"),
        (b"/contexts/./subjects/a", "subjects a"),
        (
            b"/contexts/x/compatibility/subjects/a/versions/1",
            "compatibility subjects :.x:a versions 1",
        ),
        (b"/contexts/x/config", "config :.x:"),
        (b"/contexts/x/config/a", "config :.x:a"),
        (b"/contexts/x/mode", "mode :.x:"),
        (b"/contexts/./mode", "mode"),
        (b"/contexts/x", "contexts :.x:"),
        (b"/contexts/x/schemas/ids/1", "schemas ids 1"),
    ],
)
def test_a_context_goes_into_the_subject(path: bytes, expected: str) -> None:
    assert segments(path) == expected


def test_the_context_of_a_path_counts_for_its_query() -> None:
    target = target_of(b"/contexts/x/schemas/ids/1", unchanged)
    assert with_context(target.context_prefix or "", "a") == ":.x:a"


def test_a_query_may_name_another_context() -> None:
    assert with_context(":.x:", ":.y:a") == ":.y:a"


def test_a_context_with_a_colon_is_refused() -> None:
    with pytest.raises(BadRequest, match="colon"):
        target_of(b"/contexts/a:b/subjects", unchanged)


def test_an_alias_is_replaced_in_the_path() -> None:
    target = target_of(b"/subjects/new/versions", {"new": "old"}.__getitem__)
    assert target.segments == ["subjects", "old", "versions"]
