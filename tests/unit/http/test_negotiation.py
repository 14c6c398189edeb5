"""The media type of an answer."""

import pytest

from headrace.http.negotiation import choose

OFFERED = ("application/json", "text/csv", "application/vnd.apache.arrow.stream")


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/csv", "text/csv"),
        ("text/*", "text/csv"),
        ("TEXT/CSV; charset=utf-8", "text/csv"),
        ("application/json;q=0.5, text/csv", "text/csv"),
        ("application/json;q=0, */*", "text/csv"),
        ("text/html, application/vnd.apache.arrow.stream;q=0.1", OFFERED[2]),
        ("application/json;q=nonsense, text/csv;q=0.1", "text/csv"),
        ("image/png", None),
        ("*/*;q=0", None),
    ],
)
def test_the_type_that_is_wanted_most_is_chosen(accept: str, chosen: str | None) -> None:
    assert choose(accept, OFFERED) == chosen
