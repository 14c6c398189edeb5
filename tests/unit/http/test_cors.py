"""Origins that may ask."""

from collections.abc import Sequence

import httpx2
import pytest
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from headrace.http.cors import InvalidOrigin, OwnPages, foreign_origin, middleware
from headrace.registry.errors import rendered


def test_nobody_may_ask_unless_listed() -> None:
    assert middleware(()) == []


def test_those_listed_may() -> None:
    (found,) = middleware(("https://a.example", "http://b.example:8080"))
    assert found.kwargs["allow_origins"] == ["https://a.example", "http://b.example:8080"]


@pytest.mark.parametrize("origin", ["a.example", "https://a.example/path", "ftp://a.example"])
def test_what_no_browser_sends_is_refused(origin: str) -> None:
    with pytest.raises(InvalidOrigin, match="no origin"):
        middleware((origin,))


@pytest.mark.parametrize(
    ("origin", "listed", "is_foreign"),
    [
        (None, (), False),
        ("http://Own.example:8081", (), False),
        ("https://own.example:8081", (), False),
        ("http://own.example", (), True),
        ("http://own.example:8081.evil.example", (), True),
        ("https://evil.example", (), True),
        ("null", (), True),
        ("", (), True),
        ("https://a.example", ("https://a.example",), False),
        ("https://evil.example", ("https://a.example",), True),
        ("https://evil.example", ("*",), False),
    ],
)
def test_an_origin_is_foreign_unless_own_or_listed(
    origin: str | None, listed: Sequence[str], is_foreign: bool
) -> None:
    given = {"host": "own.example:8081"} | ({} if origin is None else {"origin": origin})
    assert (foreign_origin(Headers(given), listed) is not None) is is_foreign


def test_a_request_without_a_host_is_nobodys_own() -> None:
    assert foreign_origin(Headers({"origin": "http://"}), ()) == "http://"


@pytest.mark.parametrize(
    ("method", "status"),
    [("POST", 403), ("PUT", 403), ("PATCH", 403), ("DELETE", 403), ("GET", 200), ("HEAD", 200)],
)
async def test_pages_of_other_sites_may_change_nothing(method: str, status: int) -> None:
    app = OwnPages(PlainTextResponse("done"))
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://own") as http:
        foreign = await http.request(method, "/x", headers={"Origin": "https://evil.example"})
        own = await http.request(method, "/x", headers={"Origin": "http://own"})
    assert (foreign.status_code, own.status_code) == (status, 200)


async def test_the_refusal_has_the_shape_of_the_product() -> None:
    app = OwnPages(PlainTextResponse("done"), render=rendered)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://own") as http:
        answer = await http.post("/x", headers={"Origin": "null"})
    assert answer.json() == {
        "error_code": 403,
        "message": "pages of 'null' may change nothing here",
    }
