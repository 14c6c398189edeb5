"""Origins that may ask."""

import pytest

from headrace.http.cors import InvalidOrigin, middleware


def test_nobody_may_ask_unless_listed() -> None:
    assert middleware(()) == []


def test_those_listed_may() -> None:
    (found,) = middleware(("https://a.example", "http://b.example:8080"))
    assert found.kwargs["allow_origins"] == ["https://a.example", "http://b.example:8080"]


@pytest.mark.parametrize("origin", ["a.example", "https://a.example/path", "ftp://a.example"])
def test_what_no_browser_sends_is_refused(origin: str) -> None:
    with pytest.raises(InvalidOrigin, match="no origin"):
        middleware((origin,))
