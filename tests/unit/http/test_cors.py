"""Origins whose pages may send requests."""

from collections.abc import Sequence

import httpx2
import pytest
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from headrace.http.cors import InvalidOrigin, OwnPages, check_origins, foreign_origin
from headrace.registry.errors import rendered


def test_origins_and_the_star_are_valid() -> None:
    check_origins(("https://a.example", "http://b.example:8080", "*"))


@pytest.mark.parametrize("origin", ["a.example", "https://a.example/path", "ftp://a.example"])
def test_an_origin_that_no_browser_sends_is_rejected(origin: str) -> None:
    with pytest.raises(InvalidOrigin, match="invalid origin"):
        check_origins((origin,))


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


def test_a_request_without_a_host_has_a_foreign_origin() -> None:
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


async def test_the_error_has_the_shape_of_the_product() -> None:
    app = OwnPages(PlainTextResponse("done"), render=rendered)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://own") as http:
        answer = await http.post("/x", headers={"Origin": "null"})
    assert answer.json() == {
        "error_code": 403,
        "message": "pages of 'null' may not send requests that change something",
    }
